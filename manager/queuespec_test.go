package manager_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// operator is a manager of a new namespace.
func operator(t *testing.T) *manager.Manager {
	t.Helper()
	where := storetest.Where(redistest.Shared(t))
	return manager.New(storetest.At(t, where, redistest.Namespace(t), slog.New(slog.DiscardHandler)), "ops", manager.Options{})
}

// blames wants an error that names the field and the value, and says what belongs there.
func blames(t *testing.T, err error, field, value string) {
	t.Helper()
	fe, ok := errors.AsType[*statemachine.FieldError](err)
	if !ok || fe.Field != field || fe.Value != value || fe.Want == "" {
		t.Errorf("%v, want field %q and value %q", err, field, value)
	}
}

// What a spec made by hand must not hold: the change, and what the error names.
var spoilt = []struct {
	change       func(q *task.QueueSpec)
	field, value string
}{
	{func(q *task.QueueSpec) { q.Name = "a b" }, "queue", "a b"},
	{func(q *task.QueueSpec) { q.Description = "a\nb" }, "description", "a\nb"},
	{func(q *task.QueueSpec) { q.Class = "a b" }, "class", "a b"},
	{func(q *task.QueueSpec) { q.Threads = "many" }, "threads", "many"},
	{func(q *task.QueueSpec) { q.Threads = task.AtMost(-1) }, "threads", "-1"},
	{func(q *task.QueueSpec) { q.MaxThreads = task.AtMost(1_000_000_001) }, "maxthreads", "1000000001"},
	{func(q *task.QueueSpec) { q.Pin = []string{"n1", "a b"} }, "nodes_pin", "a b"},
	{func(q *task.QueueSpec) { q.Ignore = []string{"a,b"} }, "nodes_ignore", "a,b"},
	{func(q *task.QueueSpec) { q.Ignore = []string{""} }, "nodes_ignore", ""},
	{func(q *task.QueueSpec) { q.Order = "random" }, "order", "random"},
	{func(q *task.QueueSpec) { q.Aging = task.Seconds(time.Millisecond) }, "aging", "0.001"},
	{func(q *task.QueueSpec) { q.Aging = 1 }, "aging", "0.000001"},
	{func(q *task.QueueSpec) { q.Aging = task.Seconds(9000 * time.Hour) }, "aging", "32400000"},
	{func(q *task.QueueSpec) { q.Defaults = task.Defaults{"max_fails": "-1"} }, "default_max_fails", "-1"},
	{func(q *task.QueueSpec) { q.Defaults = task.Defaults{"max_fail": "1"} }, "name", "default_max_fail"},
}

// A queue that no text could have described does not come into Redis, in whatever way.
func TestSpoiltQueueIsRefused(t *testing.T) {
	t.Parallel()
	m := operator(t)
	if _, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "q", Threads: task.AtMost(2)}, manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	before, _ := m.Queues(t.Context())
	for _, c := range spoilt {
		for _, o := range []manager.ChangeOptions{{}, {DryRun: true}} {
			fresh := task.QueueSpec{Name: "fresh"}
			c.change(&fresh)
			_, err := m.AddQueue(t.Context(), fresh, o)
			blames(t, err, c.field, c.value)
			_, err = m.SetQueue(t.Context(), "q", func(q *task.QueueSpec) error { c.change(q); return nil }, o)
			blames(t, err, c.field, c.value)
		}
	}
	if after, err := m.Queues(t.Context()); err != nil || !cmp.Equal(before, after) {
		t.Errorf("%v: %s", err, cmp.Diff(before, after))
	}
}

// Zero values become the defaults, a negative aging means none, and SetQueue keeps what
// it is not told to change.
func TestQueueSpecDefaults(t *testing.T) {
	t.Parallel()
	m := operator(t)
	added, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "q"}, manager.ChangeOptions{})
	if want := task.ParseQueue("q", nil); err != nil || !cmp.Equal(added.QueueSpec, want) {
		t.Errorf("%v: %s", err, cmp.Diff(want, added.QueueSpec))
	}
	for _, change := range []func(q *task.QueueSpec) error{
		func(q *task.QueueSpec) error { q.Aging = task.Seconds(-time.Hour); return nil },
		func(q *task.QueueSpec) error { q.Paused = true; return nil },
	} {
		if q, err := m.SetQueue(t.Context(), "q", change, manager.ChangeOptions{}); err != nil || q.EffectiveAging() != 0 || q.Created.IsZero() {
			t.Errorf("%+v, %v", q, err)
		}
	}
	whole := func(q *task.QueueSpec) error { *q = task.QueueSpec{Name: "q", Class: "c"}; return nil }
	q, err := m.SetQueue(t.Context(), "q", whole, manager.ChangeOptions{})
	if err != nil || q.Paused || q.Class != "c" || q.Aging != task.DefaultAging || q.Created.IsZero() {
		t.Errorf("%+v, %v", q, err)
	}
}

// A change that refuses, or that is only tried, changes nothing.
func TestChangeOfQueueAndNodeMayRefuse(t *testing.T) {
	t.Parallel()
	m := operator(t)
	no := errors.New("no")
	_, err := m.SetQueue(t.Context(), task.DefaultQueue, func(q *task.QueueSpec) error { q.Paused = true; return no }, manager.ChangeOptions{})
	if !errors.Is(err, no) {
		t.Error(err)
	}
	if _, err := m.SetNode(t.Context(), "n1", func(*task.NodeRecord) error { return no }, manager.ChangeOptions{}); !errors.Is(err, no) {
		t.Error(err)
	}
	try := manager.ChangeOptions{DryRun: true}
	q, err := m.SetQueue(t.Context(), task.DefaultQueue, func(q *task.QueueSpec) error { q.Paused = true; return nil }, try)
	n, nodeErr := m.SetNode(t.Context(), "n1", func(n *task.NodeRecord) error { n.MaxThreads = task.AtMost(3); return nil }, try)
	if err != nil || nodeErr != nil || !q.Paused || n.MaxThreads != task.AtMost(3) || !n.MaxThreadsSet {
		t.Errorf("%+v, %v; %+v, %v", q, err, n, nodeErr)
	}
	if q, err := m.Queue(t.Context(), task.DefaultQueue); err != nil || q.Paused {
		t.Errorf("%+v, %v", q, err)
	}
	if nodes, err := m.Nodes(t.Context()); err != nil || len(nodes) != 0 {
		t.Errorf("%+v, %v", nodes, err)
	}
}

// A limit of a node counts without another word, and what no text could say is refused.
func TestSetNodeByHand(t *testing.T) {
	t.Parallel()
	m := operator(t)
	for _, limit := range []task.Limit{task.AtMost(2), task.Unlimited, ""} {
		n, err := m.SetNode(t.Context(), "n1", func(n *task.NodeRecord) error { n.MaxThreads, n.Run = limit, 7; return nil }, manager.ChangeOptions{})
		if err != nil || n.MaxThreadsSet != (limit != "") || limit != "" && n.MaxThreads != limit || n.Run != 0 {
			t.Errorf("%q: %+v, %v", limit, n, err)
		}
	}
	for _, o := range []manager.ChangeOptions{{}, {DryRun: true}} {
		_, err := m.SetNode(t.Context(), "n1", func(n *task.NodeRecord) error { n.MaxThreads = "few"; return nil }, o)
		blames(t, err, "maxthreads", "few")
		_, err = m.SetNode(t.Context(), "n1", func(n *task.NodeRecord) error { n.Name = "n2"; return nil }, o)
		blames(t, err, "node", "n2")
		_, err = m.SetQueue(t.Context(), task.DefaultQueue, func(q *task.QueueSpec) error { q.Name = "other"; return nil }, o)
		blames(t, err, "queue", "other")
	}
}

// Of two changes made at once none is lost: the later one begins again from the other.
func TestSetQueueTwiceAtOnce(t *testing.T) {
	t.Parallel()
	m := operator(t)
	var both, first sync.WaitGroup
	first.Add(2) // both have read the queue before one of them writes
	calls := make(chan string, 10)
	change := func(word string) {
		once := sync.OnceFunc(func() { first.Done(); first.Wait() })
		_, err := m.SetQueue(t.Context(), task.DefaultQueue, func(q *task.QueueSpec) error {
			once()
			calls <- word
			q.Description = strings.TrimSpace(q.Description + " " + word)
			return nil
		}, manager.ChangeOptions{})
		if err != nil {
			t.Error(err)
		}
	}
	both.Go(func() { change("one") })
	both.Go(func() { change("two") })
	both.Wait()
	q, err := m.Queue(t.Context(), task.DefaultQueue)
	if err != nil || len(calls) < 3 || q.Description != "one two" && q.Description != "two one" {
		t.Errorf("%q after %d calls, %v", q.Description, len(calls), err)
	}
}
