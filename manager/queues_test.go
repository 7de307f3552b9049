package manager

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// setQueue and setNode set attributes by their names, each followed by its text.
func setQueue(texts ...string) func(*task.QueueSpec) error {
	return func(q *task.QueueSpec) error { return setTexts(q, texts) }
}

func setNode(texts ...string) func(*task.NodeRecord) error {
	return func(n *task.NodeRecord) error { return setTexts(n, texts) }
}

func setTexts(of interface{ Set(name, text string) error }, texts []string) error {
	for pair := range slices.Chunk(texts, 2) {
		if err := of.Set(pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

// D01: a queue is made with a name or without, and once only.
func TestAddQueue(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	gpus := task.QueueSpec{
		Name: "render", MaxThreads: task.AtMost(2), Pin: []string{"b", "a", "b"}, Description: "for gpus",
		Defaults: task.Defaults{"max_fails": "3"}, Aging: task.Seconds(time.Minute),
	}
	if _, err := m.AddQueue(t.Context(), gpus, ChangeOptions{DryRun: true}); err != nil {
		t.Error(err)
	}
	if _, err := m.Queue(t.Context(), "render"); !errors.Is(err, task.ErrNoQueue) {
		t.Errorf("after a dry run: %v", err)
	}
	if _, err := m.AddQueue(t.Context(), gpus, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, opts := range []ChangeOptions{{}, {DryRun: true}} {
		if _, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "render"}, opts); !errors.Is(err, task.ErrQueueExists) {
			t.Errorf("a second one: %v", err)
		}
	}
	q, err := m.Queue(t.Context(), "render")
	if err != nil || q.MaxThreads != task.AtMost(2) || q.Threads != task.Unlimited || !cmp.Equal(q.Pin, []string{"a", "b"}) || q.Description != "for gpus" ||
		q.Order != task.Fifo || q.Aging != task.Seconds(time.Minute) || q.Defaults["max_fails"] != "3" || q.Paused {
		t.Errorf("%+v, %v", q, err)
	}
	one, err1 := m.AddQueue(t.Context(), task.QueueSpec{}, ChangeOptions{})
	two, err2 := m.AddQueue(t.Context(), task.QueueSpec{}, ChangeOptions{})
	if err1 != nil || err2 != nil || one.Name == "" || one.Name == two.Name {
		t.Errorf("without names: %q %v, %q %v", one.Name, err1, two.Name, err2)
	}
	all, err := m.Queues(t.Context())
	if err != nil || len(all) != 4 || all[0].Name != task.DefaultQueue || all[3].Name != "render" {
		t.Errorf("%+v, %v", all, err)
	}
}

// All attributes are set, or none.
func TestSetQueue(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	if _, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "q", Threads: task.AtMost(5)}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.SetQueue(t.Context(), "q", setQueue("paused", "true", "threads", "many"), ChangeOptions{}); fieldOf(err) != "threads" {
		t.Errorf("a bad value: %v", err)
	}
	_, err := m.SetQueue(t.Context(), "q", setQueue("maxtreads", "1"), ChangeOptions{})
	if err == nil || !strings.Contains(err.Error(), "did you mean maxthreads") {
		t.Errorf("a slip: %v", err)
	}
	for name, opts := range map[string]ChangeOptions{"q": {DryRun: true}, task.DefaultQueue: {}} {
		q, err := m.SetQueue(t.Context(), name, setQueue("paused", "true", "order", "lifo"), opts)
		if err != nil || !q.Paused || q.Order != task.Lifo {
			t.Errorf("%s: %+v, %v", name, q, err)
		}
	}
	if q, err := m.Queue(t.Context(), "q"); err != nil || q.Paused || q.Threads != task.AtMost(5) {
		t.Errorf("it has changed: %+v, %v", q, err)
	}
	if q, err := m.Queue(t.Context(), task.DefaultQueue); err != nil || !q.Paused {
		t.Errorf("the default queue: %+v, %v", q, err)
	}
	if q, err := m.SetQueue(t.Context(), "q", setQueue("threads", ""), ChangeOptions{}); err != nil || q.Threads != task.Unlimited {
		t.Errorf("the default again: %+v, %v", q, err)
	}
	for _, opts := range []ChangeOptions{{}, {DryRun: true}} {
		if _, err := m.SetQueue(t.Context(), "nope", setQueue(), opts); !errors.Is(err, task.ErrNoQueue) {
			t.Errorf("no queue: %v", err)
		}
	}
}

// A queue with tasks that have not ended stays, and the error counts them.
func TestRemoveQueue(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	if _, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "q"}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	remove := func(want string, opts ChangeOptions) {
		t.Helper()
		err := m.RemoveQueue(t.Context(), "q", opts)
		if want == "" && err != nil || want != "" && (!errors.Is(err, task.ErrQueueInUse) || !strings.Contains(err.Error(), want)) {
			t.Errorf("removed: %v, want %q", err, want)
		}
	}
	mustOpen(t, m, 2, task.Spec{Program: "p", Queue: "q"})
	mustOpen(t, m, 1, task.Spec{Program: "p", Queue: "q", Hold: "x"})
	mustOpen(t, m, 1, spec())
	remove("2 open, 1 blocked, 0 running and 0 executed", ChangeOptions{DryRun: true})
	if _, err := m.Cancel(t.Context(), []int64{2}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.SetNode(t.Context(), "n1", setNode(), ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	claim(t, s, 2)
	if q, err := m.Queue(t.Context(), "q"); err != nil || q.Running != 1 || q.RunningByNode["n1"] != 1 || q.Waiting != 0 || q.Ended[sm.Cancelled] != 1 {
		t.Errorf("%+v, %v", q, err)
	}
	remove("0 open, 1 blocked, 1 running and 0 executed", ChangeOptions{})
	report(t, s, 1)
	remove("0 open, 1 blocked, 0 running and 1 executed", ChangeOptions{})
	if _, err := m.Cancel(t.Context(), []int64{3}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	worktest.Drain(t, s, worktest.Echo)
	remove("", ChangeOptions{DryRun: true})
	remove("", ChangeOptions{})
	if err := m.RemoveQueue(t.Context(), "q", ChangeOptions{}); !errors.Is(err, task.ErrNoQueue) {
		t.Errorf("removed twice: %v", err)
	}
	if err := m.RemoveQueue(t.Context(), task.DefaultQueue, ChangeOptions{}); fieldOf(err) != "queue" {
		t.Errorf("the default queue: %v", err)
	}
	if _, err := m.Submit(t.Context(), task.Spec{Program: "p", Queue: "q"}); !errors.Is(err, task.ErrNoQueue) {
		t.Errorf("opened: %v", err)
	}
}

// report hands in an empty result for a running task.
func report(tb testing.TB, s *store.Store, id int64) {
	tb.Helper()
	reportError(tb, s, id, "")
}

// reportError hands in a result that failed, unless the error is empty.
func reportError(tb testing.TB, s *store.Store, id int64, text string) {
	tb.Helper()
	t, err := s.Task(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	o := sm.Occurrence{Event: sm.Report, Actor: sm.Worker, Claim: t.Current.Claim, Round: t.Round, Failed: text != ""}
	move, err := sm.Decide(&t.Task, o, t.Current.Running)
	if err != nil {
		tb.Fatal(err)
	}
	fields := []string{sm.RoundField(move.Round, "error"), text}
	if _, err := s.Apply(tb.Context(), tasks.Commit{Move: move, Writer: "w", Bucket: t.Bucket, Fields: fields}); err != nil {
		tb.Fatal(err)
	}
}

// A node shows what an operator set, else what its workers say.
func TestNodes(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	for i, name := range []string{"w1", "w2"} {
		_, err := s.Register(t.Context(), task.Registration{
			Name: name, Identity: name, Node: "n1", Env: "py", Classes: []string{"c=1"}, MaxThreads: task.AtMost(i + 2),
			Resources: task.Resources{"gpu": i + 1},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, m, 1, task.Spec{Program: "p", Resources: map[string]int{"gpu": 1}})
	if got := claim(t, s, 1); len(got) != 1 {
		t.Fatalf("claimed %v", got)
	}
	if r := mustTask(t, m, 1).Last().Resources; r["gpu"].Count != 1 || len(r["gpu"].IDs) != 1 {
		t.Errorf("the round got %v", r)
	}
	nodes, err := m.Nodes(t.Context())
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%+v, %v", nodes, err)
	}
	n := nodes[0]
	if n.Name != "n1" || n.MaxThreadsSet || n.MaxThreads != task.AtMost(3) || n.Running != 1 || n.Offered["gpu"] != 2 || n.Used["gpu"] != 1 || len(n.Workers) != 2 ||
		n.Workers[0].Env != "py" || n.Workers[0].Classes[0] != "c=1" || n.Workers[0].MaxThreads != task.AtMost(2) || !n.Quarantined.IsZero() {
		t.Errorf("%+v", n)
	}
	for _, c := range []struct {
		name, value string
		opts        ChangeOptions
		want        task.Limit
		set         bool
	}{
		{"n1", "7", ChangeOptions{DryRun: true}, task.AtMost(7), true}, {"n1", "", ChangeOptions{}, task.AtMost(3), false}, {"n1", "0", ChangeOptions{}, task.AtMost(0), true},
		{"n1", "none", ChangeOptions{}, task.Unlimited, true}, {"n1", "", ChangeOptions{}, task.AtMost(3), false}, {"n9", "4", ChangeOptions{DryRun: true}, task.AtMost(4), true},
	} {
		n, err := m.SetNode(t.Context(), c.name, setNode("maxthreads", c.value), c.opts)
		if err != nil || n.Name != c.name || n.MaxThreads != c.want || n.MaxThreadsSet != c.set {
			t.Errorf("%+v: %+v, %v", c, n, err)
		}
	}
	if nodes, err = m.Nodes(t.Context()); err != nil || len(nodes) != 1 {
		t.Errorf("after a dry run: %+v, %v", nodes, err)
	}
	for field, set := range map[string]func(*task.NodeRecord) error{"maxthreads": setNode("maxthreads", "-1"), "name": setNode("threads", "1")} {
		if _, err := m.SetNode(t.Context(), "n1", set, ChangeOptions{}); fieldOf(err) != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := m.SetNode(t.Context(), "a/b", setNode(), ChangeOptions{}); fieldOf(err) != "node" {
		t.Errorf("a bad name: %v", err)
	}
}
