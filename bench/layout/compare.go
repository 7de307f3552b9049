package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// chosen is the layout that the decision record names; the others are compared with it.
const chosen = "L2"

// benchCase is one row of a table.
type benchCase struct {
	layout layout
	limits limits
	shape  shape
	batch  int
}

// String names the case uniquely.
func (c benchCase) String() string {
	return fmt.Sprintf("%s, %s, %s, batch %d", c.layout.name, c.limits.name, c.shape.name, c.batch)
}

// reference is the case that c's ratio is taken to: L2 in the same circumstances, and for L2 itself the same under
// default limits.
func (c benchCase) reference() benchCase {
	if c.layout.name == chosen {
		c.limits = limitSets()[0]
		return c
	}
	for _, l := range layouts() {
		if l.name == chosen {
			c.layout = l
		}
	}
	return c
}

// layoutCases compare the layouts on plain tasks, with and without raised limits, in batches and singly.
func layoutCases(batch int) []benchCase {
	var cases []benchCase
	lims := limitSets()
	for _, size := range []int{batch, 1} {
		for _, l := range layouts() {
			for _, lim := range lims[:2] {
				cases = append(cases, benchCase{l, lim, shapes()[0], size})
			}
		}
	}
	return cases
}

// limitCases compare the limits on every shape of task in the layout that was chosen.
func limitCases(batch int) []benchCase {
	var cases []benchCase
	for _, l := range layouts() {
		if l.name != chosen {
			continue
		}
		for _, sh := range shapes() {
			for _, lim := range limitSets() {
				cases = append(cases, benchCase{l, lim, sh, batch})
			}
		}
	}
	return cases
}

// inOrder returns the cases of a round, forwards or backwards: otherwise a machine that slows down for part of every
// round would always hit the same ones. Neighbours stay neighbours, which the ratios rely on.
func inOrder(round int, tables ...[]benchCase) []benchCase {
	cases := slices.Concat(tables...)
	if round%2 == 1 {
		slices.Reverse(cases)
	}
	return cases
}

// compare runs every case once a round and prints the tables.
func compare(ctx context.Context, tasks, rounds, batch int, out, progress io.Writer) error {
	byLayout, byLimit := layoutCases(batch), limitCases(batch)
	runs := map[string][]result{}
	for round := range rounds {
		for _, c := range inOrder(round, byLayout, byLimit) {
			if len(runs[c.String()]) > round {
				continue // a case of both tables
			}
			n := tasks
			if c.batch == 1 {
				n = max(1, tasks/4)
			}
			r, err := measure(ctx, c, n)
			if err != nil {
				return err
			}
			runs[c.String()] = append(runs[c.String()], r)
			_, _ = fmt.Fprintf(progress, "round %d: %s: %.1f us, %.0f bytes\n", round+1, c, r.total(), r.archived)
		}
	}
	_, err := io.WriteString(out, document(tasks, rounds, byLayout, byLimit, runs))
	return err
}

// document puts the legend and all tables into one Markdown text.
func document(tasks, rounds int, byLayout, byLimit []benchCase, runs map[string][]result) string {
	var w strings.Builder
	for _, l := range layouts() {
		fmt.Fprintf(&w, "- %s: %s\n", l.name, l.about)
	}
	for _, s := range shapes() {
		fmt.Fprintf(&w, "- tasks %q: %s\n", s.name, s.about)
	}
	fmt.Fprintf(&w, "\n%d tasks, %d rounds; microseconds of Redis CPU a task, medians\n", tasks, rounds)
	writeTable(&w, "Layouts", byLayout, runs)
	writeTable(&w, "Limits and kinds of task", byLimit, runs)
	writeGrowth(&w, byLimit, runs)
	return w.String()
}
