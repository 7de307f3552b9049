package store_test

import (
	"errors"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// TestDamagedQueueRecord: nothing is taken from a queue with a damaged field, what
// else is said of it stays, and setting the field anew repairs it.
func TestDamagedQueueRecord(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	q := task.ParseQueue("lic", nil)
	q.Threads, q.Pin, q.Description = task.AtMost(2), []string{"n"}, "licences"
	sp.AddQueue(t, q)
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "queue", "lic") }))
	sp.Raw.HSet(t.Context(), sp.Key("queue:lic"), "default_priority", "high", "of_another_client", "stays")
	set := func(key, value string) error {
		_, err := sp.Store.SetQueue(t.Context(), "lic", func(q *task.QueueSpec) error { return q.Set(key, value) })
		return err
	}
	before := sp.Raw.HGetAll(t.Context(), sp.Key("queue:lic")).Val()
	fe, ok := errors.AsType[*statemachine.FieldError](set("paused", "0"))
	if !ok || fe.Field != "default_priority" || fe.Value != "high" {
		t.Errorf("set while damaged: %v", fe)
	}
	if after := sp.Raw.HGetAll(t.Context(), sp.Key("queue:lic")).Val(); diffAny(before, after) != "" {
		t.Errorf("changed: %v", after)
	}
	if req := byRules(t, sp.Store, "w", "n"); len(req.Candidates) != 0 {
		t.Errorf("may be taken from: %+v", req.Candidates)
	}
	if err := set("default_priority", ""); err != nil {
		t.Fatal(err)
	}
	info, err := sp.Store.Queue(t.Context(), "lic")
	if err != nil || info.Damaged != nil || info.Paused || info.Threads != task.AtMost(2) || len(info.Pin) != 1 || info.Description != "licences" {
		t.Errorf("repaired: %+v, error %v", info, err)
	}
	fields := sp.Raw.HGetAll(t.Context(), sp.Key("queue:lic")).Val()
	if _, there := fields["default_priority"]; there || fields["of_another_client"] != "stays" {
		t.Errorf("fields %v", fields)
	}
	if newIdler(t, sp, "w", "n").claim() == nil {
		t.Error("nothing is claimed from the repaired queue")
	}
}

// TestDamagedNodeRecord: what is no number in the record of a node neither keeps
// tasks from it nor keeps an operator from setting its cap, which drops it.
func TestDamagedNodeRecord(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"run", "quarantined", "trials", "trial_at"} {
		sp := storetest.New(t)
		if err := sp.Store.PublishQuarantine(t.Context(), "on"); err != nil {
			t.Fatal(err)
		}
		sp.Raw.HSet(t.Context(), sp.Key("node:n"), field, "odd", "of_another_client", "stays")
		sp.Open(t, storetest.Spec())
		if newIdler(t, sp, "w", "n").claim() == nil {
			t.Errorf("%s: nothing is claimed", field)
		}
		after, err := sp.Store.SetNode(t.Context(), "n", func(n *task.NodeRecord) error { return n.Set("maxthreads", "3") })
		fields := sp.Raw.HGetAll(t.Context(), sp.Key("node:n")).Val()
		if _, there := fields[field]; err != nil || there || after.Damaged != nil || fields["maxthreads"] != "3" || fields["of_another_client"] == "" {
			t.Errorf("%s: %+v, fields %v, error %v", field, after, fields, err)
		}
	}
	sp := storetest.New(t)
	sp.Raw.HSet(t.Context(), sp.Key("node:n"), "maxthreads", "odd")
	if _, err := sp.Store.SetNode(t.Context(), "n", func(*task.NodeRecord) error { return nil }); err == nil {
		t.Error("a damaged cap is written")
	}
	if _, err := sp.Store.SetNode(t.Context(), "n", func(n *task.NodeRecord) error { return n.Set("maxthreads", "") }); err != nil {
		t.Error(err)
	}
}

// TestDamagedNodeCounts: a round ends also where the counts of its node are no
// numbers, and they begin anew.
func TestDamagedNodeCounts(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{"abc", "1.5", "99999999999999999999", ""} {
		sp := storetest.New(t)
		sp.Raw.HSet(t.Context(), sp.Key("meta"), "quarantine", "warn")
		sp.Raw.HSet(t.Context(), sp.Key("node:n"), "run", odd, "era", odd)
		ids := sp.Open(t, storetest.Spec(), storetest.Spec())
		for i, news := range []tasks.NodeNews{tasks.NodeBad, tasks.NodeGood} {
			task := newIdler(t, sp, "w", "n").claim()
			if task == nil {
				t.Fatalf("%q: nothing is claimed", odd)
			}
			m, err := statemachine.Decide(&task.Task, statemachine.Occurrence{
				Event: statemachine.Report, Actor: statemachine.Worker, Claim: task.Task.Current.Claim, Failed: news == tasks.NodeBad,
			}, noon)
			if err != nil {
				t.Fatal(err)
			}
			out, err := sp.Store.Apply(t.Context(), tasks.Commit{Move: m, Writer: "w", Node: news})
			if err != nil || out[0].Result != statemachine.Moved {
				t.Fatalf("%q: %+v, %v", odd, out, err)
			}
			if in := sp.Sets(t, ids[i]); len(in) != 1 || in[0] != statemachine.Executed {
				t.Errorf("%q: task %d is in %v", odd, ids[i], in)
			}
			node := sp.Raw.HGetAll(t.Context(), sp.Key("node:n")).Val()
			if news == tasks.NodeBad && node["run"] != "1" || news == tasks.NodeGood && node["era"] != "1" {
				t.Errorf("%q: after %s the node is %v", odd, news, node)
			}
		}
	}
}
