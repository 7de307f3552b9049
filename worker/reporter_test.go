package worker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// scriptCalls gathers the names of the scripts that are called in a namespace, in commit.
type scriptCalls struct {
	mu    sync.Mutex
	names []string
}

func (s *site) calls(t *testing.T, by ...*store.Store) *scriptCalls {
	t.Helper()
	c, names := &scriptCalls{}, map[string]string{}
	for _, st := range append(by, s.Store) { // which may have another clock
		maps.Copy(names, st.ScriptNames())
		if err := st.LoadScripts(t.Context()); err != nil { // a script that Redis does not have yet is called twice
			t.Fatal(err)
		}
	}
	s.Server.Monitor(t, func(words []string) {
		if strings.EqualFold(words[0], "evalsha") && words[3] == s.Key("meta") {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.names = append(c.names, names[words[1]])
		}
	})
	return c
}

// until waits for a call of last and returns the calls of it and of others.
func (c *scriptCalls) until(t *testing.T, last string, others ...string) (text string) {
	t.Helper()
	wait.Eventually(t, patience, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		text = strings.Join(slices.DeleteFunc(slices.Clone(c.names), func(name string) bool {
			return name != last && !slices.Contains(others, name)
		}), " ")
		return slices.Contains(c.names, last)
	}, "%s is not called", last)
	return text
}

// noop does nothing, with one slot.
func noop(o *options) {
	handlers(map[string]Handler{"noop": func(context.Context, *Job) error { return nil }})(o)
}

// While there is work a report brings the next task: the slot never asks for one.
func TestReportBringsNextTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ids := s.Open(t, slices.Repeat([]task.Definition{storetest.Spec(forHandler("noop"))}, 5)...)
	calls := s.calls(t)
	w := s.start(t, noop)
	for _, id := range ids {
		s.await(t, id, sm.Executed)
	}
	w.stop(t)
	got := calls.until(t, "leave", "turn", "move")
	// Where the rules must be read before the next claim, that follows the report.
	got = strings.ReplaceAll(got, "move turn", "turn")
	// The last report brings nothing, and the slot that is idle asks by itself, also when it is woken.
	if want := strings.Repeat("turn ", 6); !strings.HasPrefix(got, want) {
		t.Errorf("calls %s, want %s", got, want)
	}
}

// A slot that is to rest after its round gets no task with its report.
func TestRestAfterReport(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ids := s.Open(t, slices.Repeat([]task.Definition{storetest.Spec(forHandler("noop"))}, 2)...)
	calls := s.calls(t)
	w := s.start(t, noop, func(o *options) { o.SleepAfterSuccess = time.Hour })
	s.await(t, ids[0], sm.Executed)
	w.stop(t)
	if got := calls.until(t, "leave", "turn", "move"); got != "turn move leave" {
		t.Errorf("calls %s", got)
	}
	if task := s.Task(t, ids[1]); task.State != sm.Open || task.Round != 0 {
		t.Errorf("the other task: %+v", task)
	}
}

// idleWorker is one that is not run, so that a test may use its parts.
func (s *site) idleWorker(t *testing.T, st *store.Store, slots int, change ...func(*options)) *Worker {
	t.Helper()
	o := s.options(t, st)
	o.Slots = slots
	for _, f := range change {
		f(&o)
	}
	w, err := assemble(o)
	if err != nil {
		t.Fatal(err)
	}
	w.reports = t.Context()
	return w
}

// claimed opens tasks and claims them for a worker.
func (s *site) claimed(t *testing.T, n int) []tasks.Claimed {
	t.Helper()
	s.Open(t, slices.Repeat([]task.Definition{storetest.Spec()}, n)...)
	return s.Claim(t, "w", n)
}

// pendingReports are reports of tasks.
func pendingReports(t *testing.T, w *Worker, tasks []tasks.Claimed) []*pendingReport {
	t.Helper()
	all := make([]*pendingReport, len(tasks))
	for i := range tasks {
		commit, err := w.newRound(t.Context(), &tasks[i], newClock(0), nil).commit(&ending{event: sm.Report, result: notRun()})
		if err != nil {
			t.Fatal(err)
		}
		all[i] = &pendingReport{commit: &commit}
	}
	return all
}

// What is reported while a call is under way goes together in the next one.
func TestReportsGoTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	proxy, st := s.behindProxy(t)
	w := s.idleWorker(t, st, 1)
	all := pendingReports(t, w, s.claimed(t, 4))
	calls := s.calls(t, st)
	proxy.Hang()
	var sent sync.WaitGroup
	for i, l := range all {
		sent.Go(func() { w.reporter.send(t.Context(), l) })
		wait.Eventually(t, patience, func() bool {
			w.reporter.mu.Lock()
			defer w.reporter.mu.Unlock()
			return w.reporter.sending && len(w.reporter.waiting) == i
		}, "report %d is not on its way", i)
	}
	proxy.Release()
	sent.Wait()
	for _, l := range all {
		if l.err != nil || l.outcome.Result != sm.Moved {
			t.Errorf("%+v, error %v", l.outcome, l.err)
		}
	}
	s.Claim(t, "other", 1) // the last call that is seen
	if got := strings.Count(calls.until(t, "turn", "move"), "move"); got != 2 {
		t.Errorf("%d calls, want one for the first and one for the others", got)
	}
}

// A report that Redis cannot take does not touch those that go with it.
func TestReportSpoilsNoOther(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.idleWorker(t, s.Store, 1)
	all := pendingReports(t, w, s.claimed(t, 3))
	all[1].commit.Fields = make([]string, tasks.MaxFields+2)
	w.reporter.sendBatch(t.Context(), all)
	for i, l := range all {
		if bad := i == 1; (l.err != nil) != bad || !bad && l.outcome.Result != sm.Moved {
			t.Errorf("report %d: %+v, error %v", i, l.outcome, l.err)
		}
	}
}

// A call takes the sender's report, and others up to a number and a size.
func TestReportsOfOneCall(t *testing.T) {
	t.Parallel()
	large := &tasks.Commit{Fields: []string{"0:output", strings.Repeat("x", mostBytes+1)}}
	for _, c := range []struct {
		commit *tasks.Commit
		want   int
	}{{&tasks.Commit{}, mostReports}, {large, 1}} {
		o := &reporter{}
		for range mostReports + 5 {
			o.waiting = append(o.waiting, &pendingReport{commit: c.commit})
		}
		if got := len(o.take()); got != c.want || len(o.waiting) != mostReports+5-got {
			t.Errorf("%d reports, want %d; %d wait", got, c.want, len(o.waiting))
		}
	}
}

// The answer to report and claim is lost: each is repeated, and nothing runs twice.
func TestLostAnswerToReportAndClaim(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var mu sync.Mutex
	ran := map[int64]int{}
	proxy, st := s.behindProxy(t)
	ids := s.Open(t, slices.Repeat([]task.Definition{storetest.Spec(forHandler("noop"))}, 40)...)
	for range 20 { // the client repeats some by itself
		proxy.DropReply(callWith(s.Key("claim:w")))
	}
	w := s.startOn(t, st, func(o *options) {
		o.Slots = 3
		handlers(map[string]Handler{"noop": func(_ context.Context, j *Job) error {
			mu.Lock()
			defer mu.Unlock()
			ran[j.Task.ID]++
			return nil
		}})(o)
	})
	for _, id := range ids {
		s.await(t, id, sm.Executed)
	}
	w.stop(t)
	for _, id := range ids {
		task := s.Task(t, id)
		if task.Releases != 0 && ran[id] > 0 { // handed back before it was begun
			continue
		}
		if ran[id] != 1 {
			t.Errorf("task %d ran %d times, %d releases", id, ran[id], task.Releases)
		}
	}
}

// Where the worker drains already, or has no slot, what a claim brings is handed back.
func TestTooLateToBegin(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.idleWorker(t, s.Store, 1)
	tasks := s.claimed(t, 3)
	if !w.pool.close() {
		t.Fatal("something executes")
	}
	if next := w.reporter.assign(tasks[:2], newClock(0), 0, w.slots); len(next) != 0 {
		t.Errorf("begins %v", next)
	}
	w.pool.take(&assignment{claimed: &Claimed{}})
	w.start(tasks[2:], newClock(0), 0)
	w.working.Wait()
	for i := range tasks {
		checkFields(t, s.Task(t, tasks[i].Task.ID), map[string]string{"state": "open", "round": "1", "releases": "1"})
	}
}

// A drain is not over while a slot executes, and then no slot goes on.
func TestPoolCloses(t *testing.T) {
	t.Parallel()
	p := newPool([]*slot{{}}, time.Hour)
	s := p.take(&assignment{claimed: &Claimed{}})
	if p.close() || p.take(&assignment{claimed: &Claimed{}}) != nil {
		t.Error("a slot that executes is idle")
	}
	p.set(s, reporting)
	a := newAssignment(&Claimed{Bucket: task.Bucket{Queue: "r"}}, newClock(0), 0)
	if p.keep(s, a) != a || p.byQueue()["r"] != 1 || p.close() {
		t.Error("a slot does not go on after its report")
	}
	p.set(s, reporting)
	if !p.close() || p.keep(s, a) != nil {
		t.Error("a slot goes on after the drain")
	}
}

// A claim goes along only if no other one is under way or in doubt, and the rules are known.
func TestClaimAlong(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.claimer(t)
	if c.begin(0, 1, 0) != nil {
		t.Error("a claim by rules that were never read")
	}
	if _, err := c.rules.current(t.Context()); err != nil {
		t.Fatal(err)
	}
	request := c.begin(0, 1, 0)
	if request == nil || c.begin(0, 1, 0) != nil {
		t.Fatalf("claims %v, and another beside it", request)
	}
	if _, err := c.end(&tasks.ClaimReply{}, errors.New("no answer")); err == nil || !c.inDoubt() {
		t.Error("a claim without an answer is forgotten")
	}
	if c.begin(0, 1, 0) != nil {
		t.Error("a claim while another one is in doubt")
	}
	claim(t, c)
	if c.inDoubt() || c.begin(0, 1, 0) == nil {
		t.Error("no claim after the doubt")
	}
}

// While reports are sent they claim for idle slots too if that is left to them.
func TestReportsClaimForIdleSlots(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.idleWorker(t, s.Store, 3)
	w.rounds = t.Context()
	w.lease.begin(s.Register(t, "w"), shim.Now())
	defer w.lease.stop()
	if _, err := w.rules.current(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := w.reporter
	if o.await(t.Context()) {
		t.Error("waits for reports that nobody sends")
	}
	o.enter(&pendingReport{commit: &tasks.Commit{}})
	o.take()
	if request := o.request(1); request != nil {
		t.Errorf("claims %d beside the dispatcher", request.Max)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if !o.await(ended) {
		t.Error("there were no reports")
	}
	if request := o.request(1); request == nil || request.Max != 4 {
		t.Errorf("asks for %+v, want one for the slot that has reported and three for idle ones", request)
	}
	if o.sendNext(); o.awaited() {
		t.Error("still left to reports, of which there are none")
	}
}

// turnstile lets reports through one by one, and all of them once the test is over.
type turnstile struct {
	*store.Store
	came, pass chan struct{}
	over       <-chan struct{}
}

func (g *turnstile) Turn(ctx context.Context, commits []tasks.Commit, req *tasks.ClaimRequest) tasks.Turn {
	if len(commits) > 0 {
		select {
		case g.came <- struct{}{}:
		case <-g.over:
		}
		select {
		case <-g.pass:
		case <-g.over:
		}
	}
	return g.Store.Turn(ctx, commits, req)
}

// The dispatcher leaves idle slots to the reports that are on their way. Claiming beside them it would keep them from claiming, and go
// on so for the slots that they make idle.
func TestDispatcherLeavesIdleSlotsToReports(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ids := s.Open(t, slices.Repeat([]task.Definition{storetest.Spec(forHandler("noop"))}, 2)...)
	g := &turnstile{s.Store, make(chan struct{}), make(chan struct{}), t.Context().Done()}
	second := make(chan struct{})
	w := s.start(t, func(o *options) {
		o.Slots, o.Backend = 2, g
		handlers(map[string]Handler{"noop": func(_ context.Context, j *Job) error {
			if j.Task.ID == ids[1] {
				<-second
			}
			return nil
		}})(o)
	})
	wait.Receive(t, patience, g.came, "nothing is reported")
	close(second)
	wait.Eventually(t, patience, func() bool { return w.pool.count(reporting) == 2 }, "the second task does not end")
	g.pass <- struct{}{}
	wait.Receive(t, patience, g.came, "the second report does not follow")
	wait.Eventually(t, patience, w.reporter.awaited, "the dispatcher claims beside the report")
	g.pass <- struct{}{}
	for _, id := range ids {
		s.await(t, id, sm.Succeeded, sm.Executed)
	}
}
