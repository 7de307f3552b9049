package worker

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// queue makes a queue with attributes given as key=value.
func (s *site) queue(t *testing.T, name string, attributes ...string) {
	t.Helper()
	q := task.ParseQueue(name, nil)
	set(t, q.Set, attributes)
	if err := s.Store.AddQueue(t.Context(), q); err != nil {
		t.Fatal(err)
	}
}

// change changes attributes of a queue.
func (s *site) change(t *testing.T, name string, attributes ...string) {
	t.Helper()
	_, err := s.Store.SetQueue(t.Context(), name, func(q *task.QueueSpec) error {
		set(t, q.Set, attributes)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func set(t *testing.T, to func(key, value string) error, attributes []string) {
	t.Helper()
	for _, text := range attributes {
		key, value, _ := strings.Cut(text, "=")
		if err := to(key, value); err != nil {
			t.Fatal(err)
		}
	}
}

func inQueue(name string) func(*task.Definition) {
	return func(s *task.Definition) { storetest.Set(s, "queue", name) }
}

func (s *site) claimer(t *testing.T) *claimer {
	t.Helper()
	o := s.options(t, s.Store)
	return newClaimer(s.Store, newRulebook(s.Store, o.offer(), func() int { return 0 }, func() {}))
}

func claim(t *testing.T, c *claimer) tasks.ClaimReply {
	t.Helper()
	reply, _, err := c.claim(t.Context(), 0, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// Changed rules claim nothing until they are read, and they settle a request in
// doubt: what it did, or that it did nothing.
func TestStaleRules(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.queue(t, "q")
	first, second := s.open(t, inQueue("q")), s.open(t, inQueue("q"))
	c := s.claimer(t)
	view, err := c.rules.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.pending = c.request(view, 0, 1) // sent, and carried out, but not answered
	if _, err := s.Store.Claim(t.Context(), *c.pending); err != nil {
		t.Fatal(err)
	}
	s.change(t, "q", "paused=true")
	if r := claim(t, c); len(r.Tasks) != 1 || r.Tasks[0].Task.ID != first || c.inDoubt() {
		t.Errorf("the repeated request got %+v, in doubt: %v", r, c.inDoubt())
	}
	c.pending = c.request(view, 0, 1) // sent, but never carried out
	if r := claim(t, c); !r.Stale || len(r.Tasks) != 0 || c.inDoubt() {
		t.Errorf("by old rules: %+v, in doubt: %v", r, c.inDoubt())
	}
	if r := claim(t, c); r.Stale || len(r.Tasks) != 0 {
		t.Errorf("from a paused queue: %+v", r)
	}
	s.change(t, "q", "paused=false")
	turns := c.first
	if r := claim(t, c); !claimAgain(&r) {
		t.Errorf("by old rules: %+v", r)
	}
	if c.first != turns {
		t.Error("a claim by old rules passed the first turn on")
	}
	if r := claim(t, c); len(r.Tasks) != 1 || r.Tasks[0].Task.ID != second {
		t.Errorf("by new rules: %+v", r)
	}
	if c.first != turns+1 {
		t.Errorf("the queue in turn %d has the first one, after %d", c.first, turns)
	}
}

// After a flush, or a loss, the versions of the rules are counted anew: a version that
// the worker knows may then be that of other rules.
func TestNewSessionReadsTheRulesAnew(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.queue(t, "q", "paused=true")
	id := s.open(t, inQueue("q"))
	w := s.start(t)
	w.log.await(t, "no open task to claim")
	if err := s.Raw.HDel(t.Context(), s.Key("queue:q"), "paused").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Raw.Del(t.Context(), s.Key("worker:w")).Err(); err != nil {
		t.Fatal(err)
	}
	w.signalChange()
	s.await(t, id, sm.Executed)
}

// A claim of before a flush is not repeated in the session after it, which would
// take tasks by the rules of before.
func TestClaimOfBeforeAFlush(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.queue(t, "q")
	s.open(t, inQueue("q"))
	before, c := s.Register(t, "w"), s.claimer(t)
	claim := func(w fleet.Session) (tasks.ClaimReply, error) {
		r, _, err := c.claim(t.Context(), w.Incarnation, 1, "")
		return r, err
	}
	if r, err := claim(before); err != nil || len(r.Tasks) != 1 {
		t.Fatalf("claimed %+v, error %v", r, err)
	}
	view := c.rules.last()
	if _, err := s.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := claim(before); !errors.Is(err, conn.ErrLeaseLost) || c.inDoubt() {
		t.Fatalf("error %v, in doubt: %v", err, c.inDoubt())
	}
	s.queue(t, "q", "paused=true")
	s.open(t, inQueue("q"))
	after := s.Register(t, "w")
	if after.Incarnation <= before.Incarnation {
		t.Errorf("incarnation %d after %d", after.Incarnation, before.Incarnation)
	}
	c.rules.outdate() // as who registers does
	c.pending = c.request(view, before.Incarnation, 1)
	if r, err := claim(after); err != nil || len(r.Tasks) != 0 {
		t.Errorf("claimed from a paused queue: %+v, error %v", r, err)
	}
}

// Who waits because of a limit goes on at once when it is raised.
func TestRaisedLimitsWakeTheWorker(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*site, string){
		"queue on node": func(s *site, n string) { s.change(t, "q", "maxthreads="+n) },
		"queue":         func(s *site, n string) { s.change(t, "q", "threads="+n) },
		"pause":         func(s *site, n string) { s.change(t, "q", "paused="+strconv.FormatBool(n == "0")) },
		"node": func(s *site, n string) {
			if _, err := s.Store.SetNode(t.Context(), "n", func(r *task.NodeRecord) error { return r.Set("maxthreads", n) }); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := s.script(t, "p", "true")
			s.queue(t, "q")
			limit(s, "0")
			w := s.start(t, func(o *options) { o.Node, o.MaxThreads = "n", task.AtMost(5) })
			for range 4 { // one could be luck
				id := s.open(t, p, inQueue("q"))
				before := w.log.count("no open task to claim")
				wait.Eventually(t, patience, func() bool { return w.log.count("no open task to claim") > before }, "it does not idle")
				checkFields(t, s.Task(t, id), map[string]string{"state": "open", "0:worker": "-"})
				raised, err := s.Store.Now(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				limit(s, "1")
				within(t, "claiming", raised, s.await(t, id, sm.Executed).Current.Running, 500*time.Millisecond)
				limit(s, "0")
			}
		})
	}
}

// The node's cap holds for all its workers, whichever of its two sources says it.
func TestNodeCap(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	started, release := twoFiles(t)
	p := s.script(t, "p", waiting)
	for range 3 {
		s.open(t, p, input(started+" "+release))
	}
	w := s.start(t, setting(t, "node=n", "slots=3", "maxthreads=1"))
	w.log.await(t, "the node takes no more tasks")
	running := func() int64 {
		n, err := s.Store.Count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n[sm.Running]
	}
	if n := running(); n != 1 {
		t.Errorf("%d tasks run, want 1", n)
	}
	if _, err := s.Store.SetNode(t.Context(), "n", func(r *task.NodeRecord) error { return r.Set("maxthreads", "2") }); err != nil {
		t.Fatal(err)
	}
	wait.Eventually(t, patience, func() bool { return running() == 2 }, "the record of the node does not count")
	wait.Never(t, 300*time.Millisecond, func() bool { return running() != 2 }, "the cap does not hold")
	touch(t, release)
}

// D10: the heartbeat says for each queue what the worker has and does.
func TestHeartbeatOfQueues(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.lease(t, 3600*sm.Second) // what is shown is shown at once, not with the next renewal
	started, release := twoFiles(t)
	p := s.script(t, "p", waiting)
	s.queue(t, "q", "class=render", "maxthreads=1")
	s.queue(t, "empty", "maxthreads=0")
	s.queue(t, "audio", "class=audio")
	s.open(t, p, input(started+" "+release), inQueue("q"))
	s.start(t, func(o *options) { o.Node, o.Slots, o.Classes = "n", 3, []string{"render"} })
	awaitFile(t, started)
	shows := func(want ...task.QueueUse) {
		t.Helper()
		var got []task.QueueUse
		wait.Eventually(t, patience, func() bool {
			got = s.worker(t).Queues
			slices.SortFunc(got, func(a, b task.QueueUse) int { return strings.Compare(a.Queue, b.Queue) })
			return reflect.DeepEqual(got, want)
		}, "the registry shows %+v, want %+v", &got, want)
	}
	plain := task.QueueUse{Class: "*", Queue: "default", Threads: 3, Idle: 3}
	empty := task.QueueUse{Class: "*", Queue: "empty"}
	shows(plain, empty, task.QueueUse{Class: "render", Queue: "q", Threads: 1, Processing: 1})
	s.change(t, "q", "maxthreads=0")
	s.change(t, "empty", "nodes_ignore=n")
	shows(plain, task.QueueUse{Class: "render", Queue: "q", Threads: 1, Processing: 1})
	touch(t, release)
	shows(plain, task.QueueUse{Class: "render", Queue: "q"})
}

// A node in quarantine says so.
func TestNodeSetAside(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.Store.PublishQuarantine(t.Context(), "on"); err != nil {
		t.Fatal(err)
	}
	if err := s.Raw.HSet(t.Context(), s.Key("node:n"), "quarantined", sm.Time(1e15).Text(), "reason", "5 of 5 failed").Err(); err != nil {
		t.Fatal(err)
	}
	id := s.open(t, s.script(t, "p", "true"))
	w := s.start(t, func(o *options) { o.Node = "n" })
	w.log.await(t, "registered")
	wait.Eventually(t, patience, func() bool { return s.worker(t).Reason == "the node is quarantined: 5 of 5 failed" }, "it does not say so")
	w.log.await(t, "the node takes no more tasks")
	checkFields(t, s.Task(t, id), map[string]string{"state": "open", "0:worker": "-"})
}

// Rules that say it are read again after a while, although no version tells that
// the node is free.
func TestNodeIsFreeAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.claimer(t)
	claim(t, c)
	for since, want := range map[time.Duration]bool{0: false, quarantineInterval: true} {
		v := *c.rules.last()
		v.quarantined, v.read = "the node is quarantined", time.Now().Add(-since)
		c.rules.view.Store(&v)
		c.rules.outdated.Store(false)
		if claim(t, c); c.rules.outdated.Load() != want {
			t.Errorf("rules of %v ago are outdated: %v", since, !want)
		}
	}
}
