package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// compare runs every contender once a round and prints tasks a second.
func compare(ctx context.Context, o options, all []contender, out, progress io.Writer) error {
	rates := make([][]float64, len(all))
	for round := range o.rounds {
		for i, c := range all {
			took, err := c.run(ctx, o.tasks)
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], float64(o.tasks)/took.Seconds())
			_, _ = fmt.Fprintf(progress, "round %d: %s: %.0f tasks a second\n", round+1, c.name, rates[i][round])
		}
	}
	_, err := io.WriteString(out, table(o, all, rates))
	return err
}

// table shows medians, and the medians of the ratios to each of the references.
func table(o options, all []contender, rates [][]float64) string {
	var w strings.Builder
	fmt.Fprintf(&w, "%d tasks, %d at a time, %d interleaved rounds\n\n", o.tasks, o.parallel, o.rounds)
	fmt.Fprint(&w, "| | tasks a second | lowest to highest |")
	for _, ref := range all[:references] {
		fmt.Fprintf(&w, " of %s |", ref.name)
	}
	fmt.Fprintf(&w, "\n|---|--:|--:|%s\n", strings.Repeat("--:|", references))
	for i, c := range all {
		fmt.Fprintf(&w, "| %s | %.0f | %.0f-%.0f |", c.name, median(rates[i]), slices.Min(rates[i]), slices.Max(rates[i]))
		for ref := range references {
			fmt.Fprintf(&w, " %.2f |", median(ratios(rates[i], rates[ref])))
		}
		fmt.Fprintln(&w)
	}
	return w.String()
}

// ratios divides round by round.
func ratios(values, by []float64) []float64 {
	out := make([]float64, 0, len(values))
	for i, v := range values {
		out = append(out, v/by[i])
	}
	return out
}

// median returns the middle value, or the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}
