package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
)

// String is for people: "about 3 min left, critical path: fetch -> encode[7] -> join (2 min)"; empty if nothing is
// to run any more.
func (o *outlook) String() string {
	if o.Tasks == 0 {
		return ""
	}
	return o.leftText() + ", critical path: " + o.pathText()
}

// leftText is how long all of it still takes, as far as that is known.
func (o *outlook) leftText() string {
	switch {
	case o.known && o.left < time.Second:
		return roughly(o.left) + " left"
	case o.known:
		return "about " + roughly(o.left) + " left"
	case !o.Timed:
		return "unknown time left (none has succeeded yet)"
	default:
		return "unknown time left (no worker is ready)"
	}
}

// The most of a path that is shown.
const (
	pathBegin = 3
	pathEnd   = 2
)

func (o *outlook) pathText() string {
	names := make([]string, 0, pathBegin+pathEnd+1)
	for i, t := range o.path {
		switch n := len(o.path); {
		case n <= pathBegin+pathEnd+1, i < pathBegin, i >= n-pathEnd:
			names = append(names, t.called())
		case i == pathBegin:
			names = append(names, fmt.Sprintf("... %d more ...", n-pathBegin-pathEnd))
		}
	}
	text := strings.Join(names, " -> ")
	if o.Timed {
		text += " (" + roughly(o.PathTime) + ")"
	}
	return text
}

// called is the step of a task, or its id if it has none.
func (t *planned) called() string {
	if t.step == "" {
		return fmt.Sprintf("task %d", t.id)
	}
	return cli.Safe(t.step)
}

// mostRunningShown is how many running tasks are named.
const mostRunningShown = 3

// runningSteps names the tasks that run longest: "encode[3] for 12 s, encode[4] for 3 s and 2 more".
func (o *outlook) runningSteps() string {
	names := make([]string, 0, mostRunningShown)
	for _, t := range o.running[:min(len(o.running), mostRunningShown)] {
		names = append(names, t.called()+" for "+roughly(since(t.began, o.now)))
	}
	text := strings.Join(names, ", ")
	if more := len(o.running) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// roughly writes a duration in the units that matter at its size.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return "less than 1 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", (d+30*time.Second)/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%d days %d h", d/day, d%day/time.Hour)
	}
}

// object is the JSON form; times are in seconds, and null where they are not known.
func (o *outlook) object() map[string]any {
	seconds := func(d time.Duration, known bool) any {
		if !known {
			return nil
		}
		return d.Seconds()
	}
	path := make([]map[string]any, len(o.path))
	for i, t := range o.path {
		path[i] = map[string]any{"id": t.id, stepField: t.step}
	}
	return map[string]any{
		"left": seconds(o.left, o.known), "critical_path": path, "critical_path_time": seconds(o.PathTime, o.Timed),
		"work": seconds(o.Work, o.Timed), "to_run": o.Tasks, "slots": o.slots,
	}
}
