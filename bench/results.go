package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Results are the results of one run, as in the JSON file.
type Results struct {
	Date     time.Time `json:"date"`
	Machine  Machine   `json:"machine"`
	Versions []Version `json:"versions"`
	// Sizes are those of the tables, by name.
	Sizes map[string]size `json:"sizes"`
	// Settings are those of TDF that differ from the defaults.
	Settings []string `json:"settings,omitempty"`
	Tables   []Table  `json:"tables"`
}

// Version is that of a peer, or of what it needs.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Table has either contenders, or Text and Figures.
type Table struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Reference is the row that all others are compared with in the first metric.
	Reference string   `json:"reference,omitempty"`
	Metrics   []Metric `json:"metrics,omitempty"`
	Rows      []Row    `json:"rows,omitempty"`
	Ratios    []Ratio  `json:"ratios,omitempty"`
	// Text is Markdown.
	Text    string `json:"text,omitempty"`
	Figures any    `json:"figures,omitempty"`
}

// Metric is a column of a table.
type Metric struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Less   bool   `json:"less_is_better,omitempty"`
	Digits int    `json:"digits,omitempty"`
}

func (m Metric) format(v float64) string { return strconv.FormatFloat(v, 'f', m.Digits, 64) }

// The metrics of contenders.
var (
	rate      = Metric{Name: "per_second", Title: "tasks a second"}
	cpuMillis = Metric{Name: "cpu_ms", Title: "CPU ms a task", Less: true, Digits: 2}
	processed = Metric{Name: "processed_per_second", Title: "without opening"}
	opened    = Metric{Name: "opened_per_second", Title: "opened a second"}
	micros    = Metric{Name: "us", Title: "µs a task", Less: true}
	cpuMicros = Metric{Name: "cpu_us", Title: "processor time a task, µs", Less: true}
	redisCPU  = Metric{Name: "redis_cpu_us", Title: "µs of Redis a task", Less: true}
	p50       = Metric{Name: "p50_ms", Title: "p50 ms", Less: true, Digits: 2}
	p99       = Metric{Name: "p99_ms", Title: "p99 ms", Less: true, Digits: 2}

	metrics = []Metric{rate, cpuMillis, processed, opened, micros, cpuMicros, redisCPU, p50, p99}
)

// Row is one contender. It has either Values, by metric, or the reason for its absence.
type Row struct {
	Name   string            `json:"name"`
	Absent string            `json:"absent,omitempty"`
	Values map[string]Spread `json:"values,omitempty"`
	// OfReference is the median ratio to the reference in the first metric, or 0 without a reference.
	OfReference float64 `json:"of_reference,omitempty"`
}

// Spread is a metric, or a ratio, in all rounds.
type Spread struct {
	Median  float64   `json:"median"`
	Lowest  float64   `json:"lowest"`
	Highest float64   `json:"highest"`
	Rounds  []float64 `json:"rounds"`
}

// Ratio compares a row of TDF with one of a peer, by a metric. Least and Aim are its target, 0 without one; for metrics of
// which less is better they are upper bounds.
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

// measured reports whether both rows had values.
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

func (r *Results) write(file string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// comparison is a table of contenders, with the ratios between them and their targets.
type comparison struct {
	Table
	// ratios are the metrics of which TDF is compared with each peer, and with the reference.
	ratios  []Metric
	targets []target
}

// target is the ratio that a row shall reach: least, better aim. For metrics of which less is better both are upper bounds.
type target struct {
	row, of    string
	metric     Metric
	least, aim float64
}

// errMissed means that a target was not reached.
var errMissed = errors.New("target not reached")

func (c *comparison) missed() (errs []error) {
	for _, r := range c.Ratios {
		if r.Verdict == notReached {
			errs = append(errs, fmt.Errorf("%w: %s in %s, %s: %s, want %s",
				errMissed, r.Row, r.Of, c.title(r.Metric), short(r.Median), bound(r.Less, r.Least)))
		}
	}
	return errs
}

// fill computes rows and ratios from the samples.
func (c *comparison) fill(all []*contender, samples map[string][]reading) {
	for _, who := range all {
		row := Row{Name: who.name, Absent: who.absent}
		if who.absent == "" {
			row.Values = map[string]Spread{}
			for _, m := range c.Metrics {
				row.Values[m.Name] = spread(column(samples[who.name], m))
			}
			if reference := samples[c.Reference]; len(reference) == len(samples[who.name]) { // it ran in all rounds
				row.OfReference = median(ratios(column(samples[who.name], c.Metrics[0]), column(reference, c.Metrics[0])))
			}
		}
		c.Rows = append(c.Rows, row)
	}
	for _, g := range c.targets {
		if slices.ContainsFunc(all, func(who *contender) bool { return who.name == g.row && who.absent == "" }) {
			c.Ratios = append(c.Ratios, meets(g, samples))
		}
	}
	for _, m := range c.ratios {
		for _, ours := range all {
			for _, other := range all {
				if c.comparable(ours, other) && !c.targeted(ours.name, other.name, m) {
					c.Ratios = append(c.Ratios, ratio(ours.name, other.name, m, column(samples[ours.name], m), column(samples[other.name], m)))
				}
			}
		}
	}
}

// comparable reports whether one is TDF, and the other a peer or the reference.
func (c *comparison) comparable(ours, other *contender) bool {
	return !ours.peer && ours.name != c.Reference && ours.absent == "" && (other.peer || other.name == c.Reference) && other.absent == ""
}

// targeted reports whether there is a target for just this ratio.
func (c *comparison) targeted(row, peer string, m Metric) bool {
	return slices.ContainsFunc(c.targets, func(g target) bool {
		return g.row == row && g.metric == m && g.of == peer
	})
}

// meets compares a row with the peer that a target names.
func meets(g target, samples map[string][]reading) Ratio {
	r := Ratio{Row: g.row, Of: g.of, Metric: g.metric.Name, Verdict: "not measured"}
	if theirs := samples[g.of]; len(theirs) > 0 {
		r = ratio(g.row, g.of, g.metric, column(samples[g.row], g.metric), column(theirs, g.metric))
		r.Verdict = g.verdict(r.Median)
	}
	r.Least, r.Aim = g.least, g.aim
	return r
}

const notReached = "not reached"

// verdict compares a ratio with the target.
func (g target) verdict(ratio float64) string {
	reaches := func(bound float64) bool { return ratio == bound || g.metric.Less == (ratio < bound) }
	switch {
	case reaches(g.aim):
		return "aim reached"
	case reaches(g.least):
		return "reached"
	}
	return notReached
}

func ratio(row, of string, m Metric, ours, theirs []float64) Ratio {
	return Ratio{Row: row, Of: of, Metric: m.Name, Less: m.Less, Spread: spread(ratios(ours, theirs))}
}

func column(samples []reading, m Metric) []float64 {
	out := make([]float64, 0, len(samples))
	for _, r := range samples {
		out = append(out, r[m.Name])
	}
	return out
}

func spread(values []float64) Spread {
	return Spread{Median: median(values), Lowest: slices.Min(values), Highest: slices.Max(values), Rounds: values}
}

// median is the middle value, or the mean of the two in the middle, and 0 of nothing.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// ratios divides round by round.
func ratios(values, by []float64) []float64 {
	out := make([]float64, 0, len(values))
	for i, v := range values {
		out = append(out, v/by[i])
	}
	return out
}

// errWorse means that a ratio is worse than it was.
var errWorse = errors.New("worse than before")

// compare reports how each ratio changed. It returns an error if one is worse by more than the tolerance, or if no ratio
// could be compared.
func compare(before, now *Results, tolerance, latencyTolerance float64) (report string, err error) {
	var rows [][]string
	var errs []error
	compared := 0
	for _, t := range before.Tables {
		for _, old := range t.Ratios {
			row := []string{t.Name, old.Row, old.Of, t.title(old.Metric)}
			found, there := now.find(t.Name, old)
			if !there || !old.measured() {
				rows = append(rows, append(row, "", "", "not compared: not measured both times"))
				continue
			}
			compared++
			most := tolerance
			if old.Less {
				most = latencyTolerance
			}
			words, err := judge(t.Name, old, found, most)
			errs = append(errs, err)
			rows = append(rows, append(row, short(old.Median), short(found.Median), words))
		}
	}
	if compared == 0 {
		errs = append(errs, errors.New("no ratio of before was measured now"))
	}
	var w strings.Builder
	fmt.Fprintf(&w, "\n## Ratios beside those of %s\n\n", before.Date.Format("2 January 2006"))
	grid(&w, []string{"table", "TDF", "of", "metric", "before", "now", ""}, rows...)
	return w.String(), errors.Join(errs...)
}

// find looks for the same ratio.
func (r *Results) find(table string, x Ratio) (Ratio, bool) {
	for _, t := range r.Tables {
		for _, y := range t.Ratios {
			if t.Name == table && y.Row == x.Row && y.Of == x.Of && y.Metric == x.Metric && y.measured() {
				return y, true
			}
		}
	}
	return Ratio{}, false
}

// judge says by which part a ratio is better or worse.
func judge(table string, old, now Ratio, tolerance float64) (words string, err error) {
	better := now.Median/old.Median - 1
	if old.Less {
		better = old.Median/now.Median - 1
	}
	percent := fmt.Sprintf("%.0f %%", 100*max(better, -better))
	switch {
	case better >= 0:
		return percent + " better", nil
	case -better <= tolerance:
		return percent + " worse, which is within the tolerance", nil
	}
	return "**" + percent + " worse**", fmt.Errorf("%w: table %s, %s in %s, %s: %s, was %s: %s, and the tolerance is %.0f %%",
		errWorse, table, now.Row, now.Of, now.Metric, short(now.Median), short(old.Median), percent, 100*tolerance)
}
