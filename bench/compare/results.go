package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/stats"
)

// Results are all of one run, as they stand in the JSON file.
type Results struct {
	Date     time.Time `json:"date"`
	Machine  Machine   `json:"machine"`
	Versions []Version `json:"versions"`
	Sizes    sizes     `json:"sizes"`
	Tables   []Table   `json:"tables"`
}

// Version is that of a peer, or of what it needs.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Table is one table.
type Table struct {
	Name      string   `json:"name"`
	Title     string   `json:"title"`
	Reference string   `json:"reference"`
	Metrics   []Metric `json:"metrics"`
	Rows      []Row    `json:"rows"`
	Ratios    []Ratio  `json:"ratios"`
}

// Metric is a column.
type Metric struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Less   bool   `json:"less_is_better,omitempty"`
	Digits int    `json:"digits,omitempty"`
}

// Row is one contender: either Values by metric, or why there are none.
type Row struct {
	Name   string            `json:"name"`
	Absent string            `json:"absent,omitempty"`
	Values map[string]Spread `json:"values,omitempty"`
	// OfReference is the median of its ratios to the reference in the first metric; 0 if there is none.
	OfReference float64 `json:"of_reference,omitempty"`
}

// Spread is a metric, or a ratio, in all rounds.
type Spread struct {
	Median  float64   `json:"median"`
	Lowest  float64   `json:"lowest"`
	Highest float64   `json:"highest"`
	Rounds  []float64 `json:"rounds"`
}

// Ratio is a row of TDF in one of a peer, by a metric. Least and Aim are 0 where nothing is wanted; for metrics of which
// less is better they are the most that is wanted.
type Ratio struct {
	Row    string `json:"row"`
	Of     string `json:"of"`
	Metric string `json:"metric"`
	Less   bool   `json:"less_is_better,omitempty"`
	Spread
	Least   float64 `json:"least,omitempty"`
	Aim     float64 `json:"aim,omitempty"`
	Verdict string  `json:"verdict,omitempty"`
}

// measured reports whether there is a ratio at all.
func (r Ratio) measured() bool { return len(r.Rounds) > 0 }

func readResults(file string) (*Results, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r Results
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(r.Tables) == 0 {
		return nil, fmt.Errorf("%s: no tables", file)
	}
	return &r, nil
}

// table shows some of what was measured of a group.
type table struct {
	name, title string
	metrics     []metric
	// ratios are the metrics of which TDF is compared with each peer.
	ratios []metric
	// reference is the row that all others are compared with in the first metric.
	reference string
	targets   []target
}

// result computes what is shown.
func (t table) result(all []*contender, samples map[string][]reading) Table {
	out := Table{Name: t.name, Title: t.title, Reference: t.reference}
	for _, m := range t.metrics {
		out.Metrics = append(out.Metrics, Metric{m.name, m.title, m.less, m.digits})
	}
	for _, c := range all {
		row := Row{Name: c.name, Absent: c.absent}
		if c.absent == "" {
			row.Values = map[string]Spread{}
			for _, m := range t.metrics {
				row.Values[m.name] = spread(column(samples[c.name], m))
			}
			row.OfReference = ofReference(t.metrics[0], samples[c.name], samples[t.reference])
		}
		out.Rows = append(out.Rows, row)
	}
	out.Ratios = t.compare(all, samples)
	return out
}

// ofReference is 0 where the reference did not run in all rounds.
func ofReference(m metric, of, reference []reading) float64 {
	if len(reference) != len(of) {
		return 0
	}
	return stats.Median(stats.Ratios(column(of, m), column(reference, m)))
}

// compare divides what TDF has reached by what each peer has, round by round, first where there is a target.
func (t table) compare(all []*contender, samples map[string][]reading) (out []Ratio) {
	for _, g := range t.targets {
		if !slices.ContainsFunc(all, func(c *contender) bool { return c.name == g.row }) {
			continue // not selected
		}
		out = append(out, t.meets(g, all, samples))
	}
	for _, m := range t.ratios {
		for _, ours := range all {
			for _, peer := range all {
				if !ours.ours || peer.ours || peer.absent != "" || t.targeted(ours.name, peer.name, m) {
					continue
				}
				out = append(out, ratio(ours.name, peer.name, m, column(samples[ours.name], m), column(samples[peer.name], m)))
			}
		}
	}
	return out
}

// targeted reports whether there is a target for just this ratio.
func (t table) targeted(row, peer string, m metric) bool {
	return slices.ContainsFunc(t.targets, func(g target) bool {
		return g.row == row && g.metric == m && len(g.of) == 1 && g.of[0] == peer
	})
}

// meets compares with the best of the peers that a target names.
func (t table) meets(g target, all []*contender, samples map[string][]reading) Ratio {
	var there []string
	var best []float64
	for _, c := range all {
		if !slices.Contains(g.of, c.name) || c.absent != "" {
			continue
		}
		there = append(there, c.name)
		best = better(g.metric, best, column(samples[c.name], g.metric))
	}
	name := strings.Join(g.of, " or ")
	if len(g.of) > 1 {
		name += ", the better one here"
	}
	r := Ratio{Row: g.row, Of: name, Metric: g.metric.name, Verdict: "not measured"}
	if len(there) > 0 {
		r = ratio(g.row, name, g.metric, column(samples[g.row], g.metric), best)
		r.Verdict = g.verdict(r.Median)
	}
	r.Least, r.Aim = g.least, g.aim
	return r
}

// better takes the better one of each round.
func better(m metric, a, b []float64) []float64 {
	if a == nil {
		return b
	}
	out := make([]float64, 0, len(a))
	for i := range a {
		if m.less == (a[i] < b[i]) {
			out = append(out, a[i])
		} else {
			out = append(out, b[i])
		}
	}
	return out
}

func ratio(row, of string, m metric, ours, theirs []float64) Ratio {
	return Ratio{Row: row, Of: of, Metric: m.name, Less: m.less, Spread: spread(stats.Ratios(ours, theirs))}
}

func column(samples []reading, m metric) []float64 {
	out := make([]float64, 0, len(samples))
	for _, r := range samples {
		out = append(out, r[m.name])
	}
	return out
}

func spread(values []float64) Spread {
	return Spread{Median: stats.Median(values), Lowest: slices.Min(values), Highest: slices.Max(values), Rounds: values}
}

// metric is something that is measured.
type metric struct {
	name, title string
	// less says that less is better.
	less   bool
	digits int
}

func (m metric) format(v float64) string { return strconv.FormatFloat(v, 'f', m.digits, 64) }

// What is measured.
var (
	rate      = metric{name: "per_second", title: "tasks a second"}
	processed = metric{name: "processed_per_second", title: "without opening"}
	opened    = metric{name: "opened_per_second", title: "opened a second"}
	redisCPU  = metric{name: "redis_cpu_us", title: "µs of Redis a task", less: true}
	p50       = metric{name: "p50_ms", title: "p50 ms", less: true, digits: 2}
	p99       = metric{name: "p99_ms", title: "p99 ms", less: true, digits: 2}
)

func allMetrics() []metric { return []metric{rate, processed, opened, redisCPU, p50, p99} }

// target is a ratio that the issue of speed asks for. For metrics of which less is better it is the most.
type target struct {
	row string
	// of is the peer; of several, the best one that is there, round by round.
	of         []string
	metric     metric
	least, aim float64
}

// reaches reports whether a ratio is as good as a bound.
func (m metric) reaches(ratio, bound float64) bool {
	if m.less {
		return ratio <= bound
	}
	return ratio >= bound
}

func programTargets(xargs, parallel string) []target {
	return []target{
		{groupName, []string{xargs}, rate, 0.85, 1},
		{defaultName, []string{xargs}, rate, 0.7, 0.9},
		{defaultName, []string{parallel}, rate, 4, 5},
	}
}

func handlerTargets() []target {
	return []target{
		{tdfName, []string{asynqName}, rate, 1.5, 2.5},
		{tdfName, []string{bullName}, rate, 0.8, 1.2},
	}
}

func openingTargets() []target { return []target{{tdfName, []string{asynqName}, opened, 1.5, 2.5}} }

func latencyTargets() []target {
	best := []string{faktoryName, bullName}
	return []target{{tdfName, best, p50, 1.2, 1}, {tdfName, best, p99, 1.2, 1}}
}

// verdict says what is reached.
func (t target) verdict(ratio float64) string {
	switch {
	case t.metric.reaches(ratio, t.aim):
		return "aim reached"
	case t.metric.reaches(ratio, t.least):
		return "reached"
	}
	return "not reached"
}

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
