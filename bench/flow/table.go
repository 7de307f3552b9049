package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// markdown has the tables, what was counted, and the verdict.
func (r *result) markdown() string {
	var w strings.Builder
	e := &r.Ended
	n := float64(r.Opened)
	fmt.Fprintf(&w, "Flow: %d tasks in %.0f s, %d of those that succeeded kept; %.0f tasks a second, %.0f µs of Redis a task, "+
		"%.0f of all others, %.1f commands\n\n", r.Opened, e.Seconds, r.Keep, n/e.Seconds, 1e6*e.RedisCPU/n, 1e6*e.OwnCPU/n, e.Reads/n)
	fmt.Fprintf(&w, "%d samples after a warm-up of %d\n\n| | least | median | most | last fifth by first fifth |\n|---|--:|--:|--:|--:|\n",
		len(r.Samples)-r.WarmUp, r.WarmUp)
	for _, figure := range figures {
		if s, there := r.Spans[figure.name]; there {
			fmt.Fprintf(&w, "| %s | %.1f | %.1f | %.1f | %.3f |\n", figure.name, s.Least, s.Median, s.Most, s.Drift)
		}
	}
	fmt.Fprint(&w, "\n| keys | after the warm-up | bytes | at the end | bytes |\n|---|--:|--:|--:|--:|\n")
	for _, name := range slices.Sorted(maps.Keys(r.Kinds)) {
		k := r.Kinds[name]
		fmt.Fprintf(&w, "| `%s` | %d | %d | %d | %d |\n", name, k.Keys[0], k.Bytes[0], k.Keys[1], k.Bytes[1])
	}
	fmt.Fprintf(&w, "\nThe append-only file was written anew %.0f times.\n", e.Rewrites)
	fmt.Fprintf(&w, "%d opened = %d in a state + %d purged, in %d ranges of ids; %d violations\n",
		r.Account.Opened, r.Account.InStates, r.Account.Purged, r.Ranges, len(r.Violations))
	if c := r.Archive; c != nil {
		fmt.Fprintf(&w, "%d tasks in the archive, %.1f MB, %d damages\n", c.Tasks, float64(c.Bytes)/1e6, c.Damaged)
	}
	fmt.Fprintf(&w, "Flat within %.0f %%: %s\n", 100*tolerance, r.verdict())
	return w.String()
}

func (r *result) verdict() string {
	switch {
	case len(r.Samples) == r.WarmUp:
		return "not known, as the run ended before the retention was reached"
	case r.Flat:
		return "yes"
	default:
		return "no"
	}
}
