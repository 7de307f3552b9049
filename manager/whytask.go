package manager

import (
	"strings"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// situated is what is known of a task, to explain it.
func situated(t *store.Task) why.Task {
	read := newTask(t)
	found := why.Task{
		Task: t.Task, Bucket: t.Bucket, Program: t.Program, Worker: t.Worker, Node: t.Node,
		HoldReason: read.HoldReason, HeldBy: saidBy(t.Log, "held by "),
		CancelReason: read.CancelReason, CancelledBy: orText(saidBy(t.Log, "stop asked for by "), saidBy(t.Log, "cancelled by ")),
		RetryOf: read.RetryOf, RetriedBy: read.RetriedBy,
	}
	if found.HoldReason == "held by "+found.HeldBy { // what is recorded where nobody gave a reason
		found.HoldReason = ""
	}
	found.StopSince, _ = statemachine.ParseTime(t.Fields["cancel_requested"])
	rounds := read.Rounds()
	for i := range rounds {
		r := &rounds[i]
		if r.Number == t.Task.Round {
			found.Since = r.Stamps[string(t.State)]
		}
		over := r.Number < t.Task.Round || t.State.Settled()
		if over && r.Stamps[string(statemachine.Running)] != 0 {
			found.Rounds = append(found.Rounds, roundOf(r, t.Fields))
		}
	}
	if t.State == statemachine.Open && t.Task.Round == 0 && t.StartAfter > 0 && t.Fields["0:blocked"] == "" {
		found.Since = t.StartAfter // its place in line begins at a start that was given, also a past one
	}
	return found
}

func roundOf(r *Round, fields map[string]string) why.Round {
	return why.Round{
		Number: r.Number, Worker: r.Worker, Node: r.Node, Error: beginning(r.Error), ExitCode: r.ExitCode,
		Incarnation: number(fields[statemachine.RoundField(r.Number, "incarnation")]),

		Class:   statemachine.Class(fields[statemachine.RoundField(r.Number, "class")]),
		Timeout: r.Stamps[string(statemachine.StampTimeout)], Executed: r.Stamps[string(statemachine.Executed)],
	}
}

// mostSaid is how much of an error stands in a reason, in bytes.
const mostSaid = 200

// beginning is the first line of an error that is not empty.
func beginning(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	if len(line) > mostSaid {
		line, more = strings.ToValidUTF8(line[:mostSaid], ""), true
	}
	if more {
		line += " ..."
	}
	return line
}

// saidBy is who did the thing last, as the log says: "held by name: reason".
func saidBy(log, thing string) string {
	_, rest, found := cutLast(log, thing)
	if !found {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "\n")
	name, _, _ := strings.Cut(rest, ":")
	return strings.TrimSpace(name)
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}
