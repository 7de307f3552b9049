package main

import (
	"errors"
	"fmt"
	"strings"
)

// errWorse means that a ratio is worse than it was.
var errWorse = errors.New("worse than before")

// compare reports how each ratio changed. It returns an error if one is worse by more than the tolerance, or if no ratio
// could be compared.
func compare(before, now *Results, tolerance, latencyTolerance float64) (report string, err error) {
	var w strings.Builder
	fmt.Fprintf(&w, "\n## Ratios beside those of %s\n\n| table | TDF | of | metric | before | now | |\n|---|---|---|---|--:|--:|---|\n",
		before.Date.Format("2 January 2006"))
	var errs []error
	compared := 0
	for _, t := range before.Tables {
		for _, old := range t.Ratios {
			found, there := now.find(t.Name, old)
			if !there || !old.measured() {
				fmt.Fprintf(&w, "| %s | %s | %s | %s | | | not compared: not measured both times |\n", t.Name, old.Row, old.Of, t.title(old.Metric))
				continue
			}
			compared++
			most := tolerance
			if old.Less {
				most = latencyTolerance
			}
			words, err := judge(t.Name, old, found, most)
			errs = append(errs, err)
			fmt.Fprintf(&w, "| %s | %s | %s | %s | %s | %s | %s |\n",
				t.Name, old.Row, old.Of, t.title(old.Metric), short(old.Median), short(found.Median), words)
		}
	}
	if compared == 0 {
		errs = append(errs, errors.New("no ratio of before was measured now"))
	}
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
