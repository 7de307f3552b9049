package acceptance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// With quarantine=on a node that fails whatever comes to it is quarantined after at
// most 10 of a few hundred tasks, none of which pays for it; the node says so, and
// why, where people look.
func TestBadNodeIsSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.archiver(t)
	w.serverWith(t, "server", "server.quarantine=on")
	nodes := []*daemon{w.node(t, "good1", "slots=2"), w.node(t, "good2", "slots=2"), w.node(t, "bad", "slots=2", "wrapper=false")}
	for _, d := range nodes { // a node that is alone is charged for all that fails on it
		d.Says(t, `"message":"registered"`)
	}
	wait.Eventually(t, patience, func() bool { // before that nobody counts failures
		return w.Raw.HGet(t.Context(), w.Key("meta"), "quarantine").Val() == "on"
	}, "no server says that nodes may be quarantined")
	const tasks = 240
	ids := w.open(t, times(tasks, w.script(t, "p", "sleep 0.02"))...)
	wait.Eventually(t, time.Minute, func() bool {
		counts, err := w.Store.Count(t.Context())
		return err == nil && counts[sm.Archived] == tasks
	}, "not all tasks have ended")
	rounds, faults := 0, 0
	for _, id := range ids {
		task := w.archived(t, id, sm.Succeeded)
		checkFields(t, task, map[string]string{"fails": "0"})
		faults += number(t, task.Fields["faults"])
		for field, node := range task.Fields {
			if strings.HasSuffix(field, ":node") && node == "bad" {
				rounds++
			}
		}
	}
	t.Logf("the bad node has had %d rounds", rounds)
	if rounds == 0 || rounds > 10 || faults != rounds {
		t.Errorf("the bad node has had %d rounds, counted as %d faults; want 1 to 10, and all as faults", rounds, faults)
	}
	var row string
	wait.Eventually(t, patience, func() bool {
		for line := range strings.Lines(w.text(t, "node", "ls")) {
			if strings.HasPrefix(line, "bad ") {
				row = line
			}
		}
		return strings.Contains(row, "since ")
	}, "node ls does not say that the node is quarantined, but %q", late(func() string { return row }))
	contains(t, "node show", w.text(t, "node", "show", "bad"), "in a row count against it", "next trial")
	for _, name := range []string{"good1", "good2"} {
		if q := w.quarantine(t, name); q["since"] != nil {
			t.Errorf("node %s is quarantined: %v", name, q)
		}
	}
	w.sound(t)
}

// quarantine is what JSON says of it for a node.
func (w *world) quarantine(t *testing.T, node string) map[string]any {
	t.Helper()
	q, ok := w.object(t, 0, "node", "show", node)["quarantine"].(map[string]any)
	if !ok {
		t.Fatal("node show says nothing of quarantine")
	}
	return q
}

// A program that fails everywhere sets no node aside, and is charged for it.
func TestBadProgramSetsNobodyAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serverWith(t, "server", "server.quarantine=on")
	w.nodes(t, []string{"n1", "n2"}, "slots=2")
	bad := w.script(t, "bad", "exit 1")
	bad.Retry.Limit = task.AtMost(3)
	ids := w.open(t, times(4, bad)...)
	for _, id := range ids {
		w.await(t, id, sm.Failed)
	}
	for _, node := range []string{"n1", "n2"} {
		if q := w.quarantine(t, node); q["since"] != nil {
			t.Errorf("node %s is quarantined: %v", node, q)
		}
	}
	good := w.open(t, times(4, w.script(t, "good", "true"))...)
	for _, id := range good {
		w.await(t, id, sm.Succeeded)
	}
	if n := fmt.Sprint(w.quarantine(t, "n1")["since"]); n != "<nil>" {
		t.Errorf("node n1 is quarantined since %s", n)
	}
}
