package main

import (
	"fmt"
	"slices"
	"strings"
)

// median returns the middle of what pick takes from each result.
func median(runs []result, pick func(result) float64) float64 {
	values := make([]float64, 0, len(runs))
	for _, r := range runs {
		values = append(values, pick(r))
	}
	return middle(values)
}

// ratio returns the median of the quotients of the totals, round by round.
func ratio(runs, reference []result) float64 {
	values := make([]float64, 0, len(runs))
	for i, r := range runs {
		values = append(values, r.total()/reference[i].total())
	}
	return middle(values)
}

// middle returns the median of values, which it sorts.
func middle(values []float64) float64 {
	slices.Sort(values)
	mid := len(values) / 2
	if len(values)%2 == 1 {
		return values[mid]
	}
	return (values[mid-1] + values[mid]) / 2
}

// writeTable prints one Markdown row of medians for each case of the group. The ratio is the median, over the rounds,
// of the case's life to that of its reference in the same round, which removes what a busy machine does to both.
func writeTable(w *strings.Builder, title string, cases []benchCase, runs map[string][]result) {
	fmt.Fprintf(w, "\n%s\n\n", title)
	fmt.Fprintf(w, "| layout | limits | tasks | batch | %s | life | lives | ratio | waiting B | archived B |\n",
		strings.Join(steps, " | "))
	fmt.Fprintln(w, "|---|---|---|--:|"+strings.Repeat("--:|", len(steps)+5))
	for _, c := range cases {
		rs := runs[c.String()]
		fmt.Fprintf(w, "| %s | %s | %s | %d |", c.layout.name, c.limits.name, c.shape.name, c.batch)
		for _, step := range steps {
			fmt.Fprintf(w, " %.1f |", median(rs, func(r result) float64 { return r.cpu[step] }))
		}
		fmt.Fprintf(w, " %.1f | %s | %.2f | %.0f | %.0f |\n", median(rs, result.total), spread(rs),
			ratio(rs, runs[c.reference().String()]),
			median(rs, func(r result) float64 { return r.waiting }),
			median(rs, func(r result) float64 { return r.archived }))
	}
}

// spread prints the least and the greatest total.
func spread(runs []result) string {
	lo, hi := runs[0].total(), runs[0].total()
	for _, r := range runs {
		lo, hi = min(lo, r.total()), max(hi, r.total())
	}
	return fmt.Sprintf("%.0f-%.0f", lo, hi)
}

// writeGrowth prints the size and the encoding of one task's hash after each step.
func writeGrowth(w *strings.Builder, cases []benchCase, runs map[string][]result) {
	stages := []string{"open", "claim", "report", "settle", "archive"}
	fmt.Fprintf(w, "\nBytes of one task's hash after each step (t: turned into a hashtable)\n\n")
	fmt.Fprintf(w, "| layout | limits | tasks | %s |\n", strings.Join(stages, " | "))
	fmt.Fprintln(w, "|---|---|---|"+strings.Repeat("--:|", len(stages)))
	for _, c := range cases {
		fmt.Fprintf(w, "| %s | %s | %s |", c.layout.name, c.limits.name, c.shape.name)
		r := runs[c.String()][0]
		for _, stage := range stages {
			mark := ""
			if r.encoding[stage] == "hashtable" {
				mark = " t"
			}
			fmt.Fprintf(w, " %.0f%s |", r.hash[stage], mark)
		}
		fmt.Fprintln(w)
	}
}
