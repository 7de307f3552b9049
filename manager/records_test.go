package manager

import (
	"errors"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// A node that is gone can be forgotten; one where somebody is at work cannot.
func TestRemoveNode(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	r, err := s.Register(t.Context(), task.Registration{Name: "w1", Identity: "i", Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, opts := range []ChangeOptions{{}, {DryRun: true}} {
		if err := m.RemoveNode(t.Context(), "n1", opts); !errors.Is(err, task.ErrNodeInUse) {
			t.Errorf("removed: %v", err)
		}
	}
	if err := s.Leave(t.Context(), r.Session); err != nil {
		t.Fatal(err)
	}
	for i, opts := range []ChangeOptions{{DryRun: true}, {}, {}} {
		if err := m.RemoveNode(t.Context(), "n1", opts); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		if nodes, err := m.Nodes(t.Context()); err != nil || (len(nodes) == 0) != (i > 0) {
			t.Errorf("%d: %+v, %v", i, nodes, err)
		}
	}
	if err := m.RemoveNode(t.Context(), "a/b", ChangeOptions{}); fieldOf(err) != "node" {
		t.Errorf("a bad name: %v", err)
	}
}

// A damaged record is shown, and repaired by setting it anew.
func TestDamagedQueue(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	m := newManager(t, sp.Namespace)
	if _, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "q", Threads: task.AtMost(2)}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := sp.Raw.HSet(t.Context(), sp.Key("queue:q"), "order", "odd").Err(); err != nil {
		t.Fatal(err)
	}
	q, err := m.Queue(t.Context(), "q")
	if err != nil || q.Threads != task.AtMost(2) || !strings.Contains(q.Damaged.Text(), "order") {
		t.Errorf("%+v, %v", q, err)
	}
	for _, opts := range []ChangeOptions{{DryRun: true}, {}} {
		if _, err := m.SetQueue(t.Context(), "q", setQueue("threads", "3"), opts); fieldOf(err) != "order" {
			t.Errorf("set: %v", err)
		}
	}
	if q, err = m.SetQueue(t.Context(), "q", setQueue("order", ""), ChangeOptions{}); err != nil || q.Damaged != nil || q.Threads != task.AtMost(2) {
		t.Errorf("%+v, %v", q, err)
	}
}
