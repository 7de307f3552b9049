package main

import (
	"fmt"
	"strings"
)

// grid writes a Markdown table: names on the left, figures on the right.
func grid(w *strings.Builder, head []string, rows ...[]string) {
	line := func(cells []string) {
		for _, cell := range cells {
			fmt.Fprint(w, strings.TrimRight("| "+cell, " ")+" ")
		}
		fmt.Fprint(w, "|\n")
	}
	line(head)
	fmt.Fprintf(w, "|---|%s\n", strings.Repeat("--:|", len(head)-1))
	for _, row := range rows {
		line(row)
	}
}

// cells makes a row of a name and figures, with that number of decimals.
func cells(name string, digits int, figures ...float64) []string {
	row := []string{name}
	for _, f := range figures {
		row = append(row, fmt.Sprintf("%.*f", digits, f))
	}
	return row
}

// textTable is a table of figures that are not compared.
func textTable(name string, w *strings.Builder, title string, args ...any) []Table {
	return []Table{{Name: name, Title: fmt.Sprintf(title, args...), Text: w.String()}}
}

// markdown is the text of RESULTS.md.
func (r *Results) markdown() string {
	var w strings.Builder
	fmt.Fprintf(&w, "# Results\n\nWritten by `go run ./bench` on %s; [README.md](README.md) says how to read it.\n\n"+
		"Machine: %s. Load when it began: %s.\n", r.Date.Format("2 January 2006, 15:04 UTC"), r.Machine, r.Machine.Load)
	if r.Machine.busy() {
		fmt.Fprint(&w, "\n**The machine was busy with other things: these figures only show what there is. Repeat them when it is quiet.**\n")
	}
	if len(r.Settings) > 0 {
		fmt.Fprintf(&w, "\nSettings of TDF that are not the defaults: %s.\n", strings.Join(r.Settings, ", "))
	}
	r.targets(&w)
	for i := range r.Tables {
		r.Tables[i].markdown(&w)
	}
	fmt.Fprint(&w, "\n## Versions\n\n")
	rows := make([][]string, 0, len(r.Versions))
	for _, v := range r.Versions {
		rows = append(rows, []string{v.Name, strings.ReplaceAll(v.Version, "|", "\\|")})
	}
	grid(&w, []string{"", ""}, rows...)
	return w.String()
}

// targets writes the ratios that have a target.
func (r *Results) targets(w *strings.Builder) {
	var rows [][]string
	for _, t := range r.Tables {
		for _, x := range t.Ratios {
			if x.Verdict == "" {
				continue
			}
			ratio, rounds := "-", "-"
			if x.measured() {
				ratio, rounds = short(x.Median), short(x.Lowest)+"-"+short(x.Highest)
			}
			rows = append(rows, []string{
				t.Name, x.Row, x.Of, t.title(x.Metric), ratio, rounds, bound(x.Less, x.Least), bound(x.Less, x.Aim), x.Verdict,
			})
		}
	}
	if len(rows) > 0 {
		fmt.Fprint(w, "\n## Targets\n\n")
		grid(w, []string{"table", "TDF", "of", "metric", "ratio", "rounds", "at least", "aim", ""}, rows...)
	}
}

// bound writes a bound of a target: an upper one if less is better.
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
	fmt.Fprintf(w, "\n## %s\n\n%s.\n", strings.ToUpper(t.Name[:1])+t.Name[1:], t.Title)
	if len(t.Rows) > 0 {
		head, rows := []string{""}, [][]string{}
		for _, m := range t.Metrics {
			head = append(head, m.Title, "lowest to highest")
		}
		for _, row := range t.Rows {
			rows = append(rows, row.cells(t.Metrics))
		}
		fmt.Fprintln(w)
		grid(w, append(head, "of "+t.Reference), rows...)
		t.others(w)
	}
	if t.Text != "" {
		fmt.Fprintf(w, "\n%s", t.Text)
	}
}

func (r *Row) cells(metrics []Metric) []string {
	if r.Absent != "" {
		return append([]string{r.Name, "absent"}, make([]string, 2*len(metrics))...)
	}
	row := []string{r.Name}
	for _, m := range metrics {
		v := r.Values[m.Name]
		row = append(row, m.format(v.Median), m.format(v.Lowest)+"-"+m.format(v.Highest))
	}
	if r.OfReference == 0 {
		return append(row, "")
	}
	return append(row, short(r.OfReference))
}

// others writes the ratios without a target, and why contenders are absent.
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
