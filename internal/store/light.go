package store

import (
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// lightFields is the order in which lib/light.lua returns a task.
var lightFields = []string{
	"state", "round", "rev", "fails", "timeouts", "losses", "releases", "faults", "start_after", "end_before", "not_before",
	"timeout", "max_fails", "max_timeouts", "max_losses", "max_faults", queueField, "env", "labels", resourcesField, "priority",
	"outcome", "cancel_requested", "charge", "retry_delay", "retry_backoff", "retry_max_delay", "retry_jitter",
	"retry_exit_codes", "fatal_exit_codes", "program",
	"claim", "running", "executed", "worker", "incarnation", "node", "class", "exit_code", "failed",
	"failed_nodes",
}

var lightIndex = func() map[string]int {
	m := make(map[string]int, len(lightFields))
	for i, name := range lightFields {
		m[name] = i
	}
	return m
}()

// lightOf picks the light fields, in their order, from all that a task has.
func lightOf(fields map[string]string) reply {
	round := fields["round"] + ":"
	light := make(reply, len(lightFields))
	for i, name := range lightFields {
		switch name {
		case "claim", "running", "executed", "worker", "incarnation", "node", "class", "exit_code":
			light[i] = fields[round+name]
		case "failed":
			light[i] = flag(fields[round+"error"] != "")
		default:
			light[i] = fields[name]
		}
	}
	return light
}

func decodeSeen(id int64, r reply) Seen {
	f := fieldReader{get: func(name string) string { return r.text(lightIndex[name]) }}
	t := Seen{state: f.get("state"), round: f.get("round"), rev: f.get("rev")}
	t.ID = id
	switch {
	case len(r) == 0 || t.state == "" && t.round == "":
		t.Err = &DamageError{ID: id, Reason: "hash is missing"}
		return t
	case !statemachine.State(t.state).Valid():
		t.Err = &DamageError{ID: id, Reason: "field state: " + quote(t.state) + " is not a state"}
		return t
	case t.round == "":
		t.Err = &DamageError{ID: id, Reason: "field round is missing"}
		return t
	}
	t.Task = f.task(id)
	t.Current = f.current()
	t.Node, t.Program = f.get("node"), f.get("program")
	t.Bucket = f.bucket()
	if names := f.get("failed_nodes"); names != "" {
		t.FailedNodes = strings.Split(names, ",")
	}
	t.Worker, t.Incarnation = f.get("worker"), int64(f.count("incarnation"))
	if f.err != nil {
		t.Err = &DamageError{ID: id, Reason: f.err.Error()}
	}
	return t
}
