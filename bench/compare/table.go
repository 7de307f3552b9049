package main

import (
	"slices"
	"strings"

	"github.com/tdf-go/tdf/bench/stats"
)

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
