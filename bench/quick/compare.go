package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/bench/contend"
	"github.com/tdf-go/tdf/bench/stats"
)

// compareSystems measures TDF and its peers and writes the table.
func compareSystems(ctx context.Context, o options, all []contend.Contender, out, progress io.Writer) error {
	samples, err := measure(ctx, o, all, progress)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, table(o, all, samples))
	return err
}

// table shows medians, and the medians of the ratios to each of the references.
func table(o options, all []contend.Contender, samples [][]sample) string {
	var w strings.Builder
	fmt.Fprintf(&w, "Whole systems: %s\n\n", o.size())
	fmt.Fprint(&w, "| | tasks a second | lowest to highest |")
	for _, ref := range all[:references] {
		fmt.Fprintf(&w, " of %s |", ref.Name)
	}
	fmt.Fprintf(&w, "\n|---|--:|--:|%s\n", strings.Repeat("--:|", references))
	for i, c := range all {
		fmt.Fprint(&w, leading(c.Name, rates(samples[i])))
		for ref := range references {
			fmt.Fprintf(&w, " %.2f |", stats.Median(stats.Ratios(rates(samples[i]), rates(samples[ref]))))
		}
		fmt.Fprintln(&w)
	}
	return w.String()
}

// leading are the first columns of a row.
func leading(name string, rates []float64) string {
	return fmt.Sprintf("| %s | %.0f | %.0f-%.0f |", name, stats.Median(rates), slices.Min(rates), slices.Max(rates))
}
