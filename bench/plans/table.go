package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// What is wanted of plans.
const (
	mostRatio     = 2 // the time a task of a plan takes, in that of one that needs nothing
	longestScript = 5 * time.Millisecond
)

// errTooMuch means that plans cost more than they may.
var errTooMuch = errors.New("plans cost too much")

// tables are Markdown.
func (f *figures) tables(o options) string {
	var w strings.Builder
	fmt.Fprintf(&w, "Plans: %d tasks in layers of %d, %d needs each; %d server, workers x slots %dx%d; %d interleaved slices\n\n",
		o.tasks, o.layer, o.needs, o.servers, o.workers, o.slots, o.slices)
	fmt.Fprint(&w, "| | built a second | run a second | processor time a task, µs | of it Redis | bytes a task, waiting | ended |\n"+
		"|---|--:|--:|--:|--:|--:|--:|\n")
	f.lives[flatKind].row(&w, "tasks that need nothing", o.tasks)
	f.lives[planKind].row(&w, "tasks of the plan", o.tasks)
	times, costs := f.ratios(took), f.ratios(cost)
	fmt.Fprintf(&w, "\nA task of the plan takes %.2f times as long as one that needs nothing (slices: %.2f to %.2f), "+
		"and %.2f times the processor time.\n",
		median(times), slices.Min(times), slices.Max(times), median(costs))
	halves, each := o.halves(), f.lives[planKind]
	fmt.Fprintf(&w, "Needs: %.0f a second built, %.0f a second told while all of it runs; "+
		"by servers alone: %.0f a second, %.0f tasks a second released.\n\n",
		rate(o.edges(), each.build), rate(o.edges(), each.took()), rate(halves.edges(), f.release), rate(halves.layer, f.release))
	f.slowTable(&w)
	if f.shared {
		fmt.Fprint(&w, "\nRedis had to share its processor, which is in these times: only root can let it go first.\n")
	}
	if o.profile {
		f.profileTable(&w, o.tasks)
	}
	return w.String()
}

func (l *life) row(w *strings.Builder, name string, tasks int) {
	var all slice
	for _, s := range l.slices {
		all.ownCPU, all.redisCPU = all.ownCPU+s.ownCPU, all.redisCPU+s.redisCPU
	}
	each := float64(tasks)
	fmt.Fprintf(w, "| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f |\n", name, rate(tasks, l.build), rate(tasks, l.took()),
		cost(all)*1e6/each, all.redisCPU.Seconds()*1e6/each, (l.waiting-l.empty)/each, (l.ended-l.empty)/each)
}

// took is the time of all slices.
func (l *life) took() (sum time.Duration) {
	for _, s := range l.slices {
		sum += s.took
	}
	return sum
}

// slowTable shows for each script the longest call, and in brackets how many took longer than they may.
func (f *figures) slowTable(w *strings.Builder) {
	fmt.Fprint(w, "| longest call of a script, ms |")
	all := map[string]time.Duration{}
	for k := range kinds {
		fmt.Fprintf(w, " %s |", k)
		for name, script := range f.slow[k] {
			all[name] = max(all[name], script.longest)
		}
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("--:|", int(kinds)))
	for _, name := range slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Compare(all[b], all[a]) }) {
		fmt.Fprintf(w, "| %s |", name)
		for k := range kinds {
			fmt.Fprintf(w, " %s |", f.slow[k][name])
		}
		fmt.Fprintln(w)
	}
}

// profileTable shows what the scripts cost in all.
func (f *figures) profileTable(w *strings.Builder, tasks int) {
	fmt.Fprint(w, "\n| script | unconnected: calls a task | µs a task | plan: calls a task | µs a task |\n|---|--:|--:|--:|--:|\n")
	for _, name := range slices.Sorted(maps.Keys(f.slow[planKind])) {
		fmt.Fprintf(w, "| %s |", name)
		for _, k := range []kind{flatKind, planKind} {
			script := f.slow[k][name]
			fmt.Fprintf(w, " %.2f | %.1f |", float64(script.calls)/float64(tasks), float64(script.all.Microseconds())/float64(tasks))
		}
		fmt.Fprintln(w)
	}
}

// check is an error if plans cost more than they may.
func (f *figures) check() error {
	var errs []error
	if ratio := median(f.ratios(took)); ratio > mostRatio {
		errs = append(errs, fmt.Errorf("%w: a task takes %.2f times as long as one that needs nothing, want at most %d",
			errTooMuch, ratio, mostRatio))
	}
	for name, script := range f.slow[planKind] {
		if script.longest > longestScript {
			errs = append(errs, fmt.Errorf("%w: the script %s took %s, want at most %s", errTooMuch, name, script.longest, longestScript))
		}
	}
	return errors.Join(errs...)
}

// ratios are what the plan costs in what tasks that need nothing cost, slice by slice.
func (f *figures) ratios(of func(slice) float64) []float64 {
	out := make([]float64, 0, len(f.lives[planKind].slices))
	for i, s := range f.lives[planKind].slices {
		out = append(out, of(s)/of(f.lives[flatKind].slices[i]))
	}
	return out
}

func took(s slice) float64 { return s.took.Seconds() }
func cost(s slice) float64 { return (s.redisCPU + s.ownCPU).Seconds() }

// rate is how many things a second.
func rate(things int, took time.Duration) float64 { return float64(things) / took.Seconds() }

// median returns the middle value, or the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}
