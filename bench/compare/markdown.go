package main

import (
	"fmt"
	"strings"
)

// markdown is the text of RESULTS.md.
func (r *Results) markdown() string {
	var w strings.Builder
	fmt.Fprintf(&w, "# Results\n\nWritten by `make bench` on %s; %s says how to read it. %d interleaved rounds.\n",
		r.Date.Format("2 January 2006, 15:04 UTC"), "[README.md](README.md)", r.Sizes.Rounds)
	fmt.Fprintf(&w, "\nMachine: %s. Load when it began: %s.\n", r.Machine, r.Machine.Load)
	if r.Machine.busy() {
		fmt.Fprint(&w, "\n**The machine was busy with other things: these figures only show what there is. Repeat them when it is quiet.**\n")
	}
	if len(r.Sizes.Settings) > 0 {
		fmt.Fprintf(&w, "\nSettings of TDF that are not the defaults: %s.\n", strings.Join(r.Sizes.Settings, ", "))
	}
	r.targets(&w)
	for i := range r.Tables {
		r.Tables[i].markdown(&w)
	}
	fmt.Fprint(&w, "\n## Versions\n\n| | |\n|---|---|\n")
	for _, v := range r.Versions {
		fmt.Fprintf(&w, "| %s | %s |\n", v.Name, cell(v.Version))
	}
	return w.String()
}

// targets are the ratios of which something is wanted.
func (r *Results) targets(w *strings.Builder) {
	fmt.Fprint(w, "\n## Targets\n\n| table | TDF | of | metric | ratio | rounds | at least | aim | |\n|---|---|---|---|--:|--:|--:|--:|---|\n")
	for _, t := range r.Tables {
		for _, x := range t.Ratios {
			if x.Verdict == "" {
				continue
			}
			ratio, rounds := "-", "-"
			if x.measured() {
				ratio, rounds = short(x.Median), short(x.Lowest)+"-"+short(x.Highest)
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
				t.Name, x.Row, x.Of, t.title(x.Metric), ratio, rounds, bound(x.Less, x.Least), bound(x.Less, x.Aim), x.Verdict)
		}
	}
}

// bound says that of less, at most so much is wanted.
func bound(less bool, value float64) string {
	if less {
		return fmt.Sprintf("≤ %g", value)
	}
	return fmt.Sprintf("%g", value)
}

func (t *Table) title(metric string) string {
	for _, m := range t.Metrics {
		if m.Name == metric {
			return m.Title
		}
	}
	return metric
}

func (t *Table) markdown(w *strings.Builder) {
	fmt.Fprintf(w, "\n## %s\n\n%s.\n\n|", strings.ToUpper(t.Name[:1])+t.Name[1:], t.Title)
	for _, m := range t.Metrics {
		fmt.Fprintf(w, " | %s | lowest to highest", m.Title)
	}
	fmt.Fprintf(w, " | of %s |\n|---|%s--:|\n", t.Reference, strings.Repeat("--:|--:|", len(t.Metrics)))
	for _, row := range t.Rows {
		row.markdown(w, t.Metrics)
	}
	t.others(w)
}

func (r *Row) markdown(w *strings.Builder, metrics []Metric) {
	fmt.Fprintf(w, "| %s |", r.Name)
	if r.Absent != "" {
		fmt.Fprintf(w, " absent |%s\n", strings.Repeat(" |", 2*len(metrics)))
		return
	}
	for _, m := range metrics {
		v := r.Values[m.Name]
		fmt.Fprintf(w, " %.*f | %.*f-%.*f |", m.Digits, v.Median, m.Digits, v.Lowest, m.Digits, v.Highest)
	}
	if r.OfReference == 0 {
		fmt.Fprint(w, " |\n")
		return
	}
	fmt.Fprintf(w, " %s |\n", short(r.OfReference))
}

// others are the ratios of which nothing is wanted, and the reasons of those that are absent.
func (t *Table) others(w *strings.Builder) {
	var all []string
	for _, x := range t.Ratios {
		if x.Verdict == "" {
			all = append(all, fmt.Sprintf("%s in %s, %s: %s (%s-%s)",
				x.Row, x.Of, t.title(x.Metric), short(x.Median), short(x.Lowest), short(x.Highest)))
		}
	}
	if len(all) > 0 {
		fmt.Fprintf(w, "\nOther ratios:\n\n- %s\n", strings.Join(all, "\n- "))
	}
	for _, row := range t.Rows {
		if row.Absent != "" {
			fmt.Fprintf(w, "\n%s is absent: %s.\n", row.Name, row.Absent)
		}
	}
}

// short is a ratio with two digits behind the point, or more where it is small.
func short(ratio float64) string {
	if ratio < 0.1 {
		return fmt.Sprintf("%.2g", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

// cell makes a text fit into a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
