package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/stats"
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
		stats.Median(times), slices.Min(times), slices.Max(times), stats.Median(costs))
	halves, each := o.halves(), f.lives[planKind]
	fmt.Fprintf(&w, "Needs: %.0f a second built, %.0f a second told while all of it runs; "+
		"by servers alone: %.0f a second, %.0f tasks a second released.\n\n",
		rate(o.edges(), each.build), rate(o.edges(), each.took()), rate(halves.edges(), f.release), rate(halves.layer, f.release))
	f.slowTable(&w)
	f.pausesLine(&w)
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

// pausesLine says which of the long calls are those of the machine.
func (f *figures) pausesLine(w *strings.Builder) {
	if f.shared {
		fmt.Fprint(w, "\nRedis had to share its processor, which is in these times: only root can let it go first.\n")
	}
	p := &f.pauses
	fmt.Fprintf(w, "\nThe machine alone stopped a thread that looks at the clock %d times in %.0f s for more than %.0f ms, "+
		"at most for %.1f ms: in the %.0f s that scripts of the plan and of its release ran, %.0f such calls are to be expected "+
		"and %.0f can be chance; there were %d.\n",
		p.Count, p.Watched.Seconds(), p.Limit.Seconds()*1000, p.Longest.Seconds()*1000, f.scripts.Seconds(), p.Expected(f.scripts),
		p.Chance(f.scripts), f.above())
}

// above is how many calls of the plan's scripts took longer than they may.
func (f *figures) above() (calls int) {
	for _, k := range []kind{planKind, releaseKind} {
		for _, script := range f.slow[k] {
			calls += script.above
		}
	}
	return calls
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
	if ratio := stats.Median(f.ratios(took)); ratio > mostRatio {
		errs = append(errs, fmt.Errorf("%w: a task takes %.2f times as long as one that needs nothing, want at most %d",
			errTooMuch, ratio, mostRatio))
	}
	if calls, chance := f.above(), f.pauses.Chance(f.scripts); float64(calls) > chance {
		errs = append(errs, fmt.Errorf("%w: %d calls of scripts took more than %s, and the machine explains %.1f at most",
			errTooMuch, calls, longestScript, chance))
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
