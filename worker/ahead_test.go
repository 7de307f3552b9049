package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// hurry makes a worker think that its rounds are short.
func (w *Worker) hurry() {
	for range paceRounds {
		w.pace.add(time.Microsecond)
	}
}

// aheadTime is how long tasks claimed ahead wait for a slot.
func aheadTime(d time.Duration) func(*options) { return func(o *options) { o.aheadTime = d } }

// supplied is a worker of one slot, in which task 3 waits for the file release, that has claimed the tasks 4 to 7 ahead. Each of
// these says in ledger that it runs.
func (s *site) supplied(t *testing.T, change ...func(*options)) (w *running, release, ledger string) {
	t.Helper()
	return s.suppliedOn(t, s.Dial(t), change...)
}

func (s *site) suppliedOn(t *testing.T, st *store.Store, change ...func(*options)) (w *running, release, ledger string) {
	t.Helper()
	started, release := twoFiles(t)
	ledger = filepath.Join(t.TempDir(), "ledger")
	w = s.startOn(t, st, change...)
	short := s.script(t, "short", "exit 0")
	s.await(t, s.open(t, short), sm.Executed) // it is fetched, which takes a while
	w.hurry()
	specs := []task.Definition{storetest.Spec(short), storetest.Spec(s.script(t, "long", waiting), input(started+" "+release))}
	for range 4 {
		specs = append(specs, storetest.Spec(s.script(t, "p", `echo $TDF_TASK_ID.$TDF_ROUND >> "$1"`), input(ledger)))
	}
	s.Open(t, specs...)
	awaitFile(t, started)
	wait.Eventually(t, patience, func() bool { return s.Task(t, 7).Round > 0 || w.pool.supply() == 4 }, "nothing is claimed ahead")
	return w, release, ledger
}

// handedBack checks that what was claimed ahead went back at no charge and never ran.
func (s *site) handedBack(t *testing.T, ledger string) {
	t.Helper()
	for id := int64(4); id <= 7; id++ {
		wait.Eventually(t, patience, func() bool { return s.Task(t, id).Round > 0 }, "task %d is not handed back", id)
		checkFields(t, s.Task(t, id), map[string]string{"releases": "1", "losses": "", "0:begun": "", "0:end": string(sm.HandBack)})
	}
	if text, err := os.ReadFile(ledger); err == nil && strings.Contains(string(text), ".0") {
		t.Errorf("there ran %q", text)
	}
}

// What was claimed ahead runs in its order as soon as there is a slot, once, and its timeout counts from then.
func TestAhead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w, release, ledger := s.supplied(t, aheadTime(time.Hour))
	touch(t, release)
	for id := int64(3); id <= 7; id++ {
		s.await(t, id, sm.Executed)
	}
	if got := awaitFile(t, ledger); got != "4.0\n5.0\n6.0\n7.0\n" {
		t.Errorf("ran %q", got)
	}
	for id := int64(4); id <= 7; id++ {
		f := s.Task(t, id).Fields
		if f["0:begun"] <= s.Task(t, 3).Fields["0:running"] || f["0:begun"] > f["0:executed"] {
			t.Errorf("task %d has begun at %s, running %s, executed %s", id, f["0:begun"], f["0:running"], f["0:executed"])
		}
	}
	if f := s.Task(t, 3).Fields; f["0:begun"] != "" {
		t.Errorf("task 3, which had a slot, has begun at %s", f["0:begun"])
	}
	w.stop(t)
}

// A timeout counts from the beginning of a round that was claimed ahead.
func TestAheadTimeout(t *testing.T) {
	t.Parallel()
	now := sm.Time(time.Hour.Microseconds())
	a := newAssignment(&Claimed{Task: sm.Task{Timeout: 5 * sm.Second, EndBefore: sm.Never, Current: sm.Round{Claim: "c", Running: now - 20*sm.Time(sm.Second)}},
		Expiry: sm.Never}, newClock(now), 0)
	a.begin()
	ctx, cancel := (&round{Claimed: a.claimed, clock: a.clock}).bounded(t.Context())
	defer cancel()
	if err := ctx.Err(); err != nil {
		t.Errorf("at its beginning: %v", err)
	}
	wait.Closed(t, patience, ctx.Done(), "it never ends")
}

// What does not begin in time is handed back, and for a while nothing is claimed ahead.
func TestAheadOfALongProgram(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w, _, ledger := s.supplied(t)
	s.handedBack(t, ledger)
	if n := w.further(); n != 0 {
		t.Errorf("claims %d more tasks ahead", n)
	}
	if !strings.Contains(s.Task(t, 4).Fields["log"], "handing back task 4: no slot was free for it in time\n") {
		t.Errorf("log %q", s.Task(t, 4).Fields["log"])
	}
}

// Whatever keeps a worker from claiming makes it hand back what it has claimed ahead.
func TestAheadIsHandedBack(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, *site, *running){
		"paused": func(t *testing.T, s *site, _ *running) { s.change(t, task.DefaultQueue, "paused=true") },
		"cordoned": func(t *testing.T, s *site, w *running) {
			_, err := s.Store.SetNode(t.Context(), w.opts.Node, func(r *task.NodeRecord) error { return r.Set("maxthreads", "0") })
			if err != nil {
				t.Fatal(err)
			}
		},
		"drained": func(t *testing.T, s *site, _ *running) { s.command(t, task.CommandDrain) },
		"stopped": func(_ *testing.T, _ *site, w *running) { w.cancel() },
		"a lost lease": func(t *testing.T, s *site, w *running) {
			if err := s.Raw.HSet(t.Context(), s.Key("worker:w"), "state", "lost").Err(); err != nil {
				t.Fatal(err)
			}
			w.signalChange()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			w, _, ledger := s.supplied(t, aheadTime(time.Hour))
			stop(t, s, w)
			s.handedBack(t, ledger)
		})
	}
}

// A task that is cancelled while it waits for a slot never begins.
func TestCancelledAhead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w, release, ledger := s.supplied(t, aheadTime(time.Hour))
	s.askStop(t, 5)
	w.signalChange()
	wait.Eventually(t, patience, func() bool { return len(*w.stops.Load()) > 0 }, "it does not hear of it")
	touch(t, release)
	s.await(t, 5, sm.Terminated)
	s.await(t, 7, sm.Executed)
	if got := awaitFile(t, ledger); got != "4.0\n6.0\n7.0\n" {
		t.Errorf("ran %q", got)
	}
}

// How many tasks are claimed ahead follows from the mean of the last 100 rounds.
func TestPace(t *testing.T) {
	t.Parallel()
	var p pace
	for i, c := range []struct {
		rounds int
		took   time.Duration
		want   int
	}{
		{99, 0, 0}, {1, 0, 4}, {50, 10 * time.Millisecond, 4}, {50, 9 * time.Millisecond, 2}, {100, 10 * time.Millisecond, 0},
		{90, time.Millisecond, 4}, {1, time.Minute, 0}, {99, time.Millisecond, 0}, {1, time.Millisecond, 4},
	} {
		for range c.rounds {
			p.add(c.took)
		}
		if got := p.ahead(4, 20*time.Millisecond); got != c.want {
			t.Errorf("%d: %d tasks ahead, want %d", i, got, c.want)
		}
	}
	for _, c := range []struct{ took, want time.Duration }{{0, leastGather}, {2 * time.Millisecond, 2 * time.Millisecond}, {time.Second, mostGather}} {
		for range paceRounds {
			p.add(c.took)
		}
		if got := p.gather(); got != c.want {
			t.Errorf("a report waits for %v, want %v", got, c.want)
		}
	}
	p.forget()
	if got := p.ahead(4, 20*time.Millisecond); got != 0 {
		t.Errorf("%d tasks ahead without a mean", got)
	}
}

// Who claims nothing ahead: handlers, slots that rest, and who is told so.
func TestNothingAhead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, change := range map[string]func(*options){
		"told so":              setting(t, "ahead=0"),
		"handlers":             handlers(map[string]Handler{"p": counting(&atomic.Int64{})}),
		"a rest after success": setting(t, "sleep_after_success=1"),
		"a rest after failure": setting(t, "sleep_after_failure=1"),
	} {
		w := s.idleWorker(t, s.Store, 1, change)
		w.hurry()
		if n := w.further(); n != 0 {
			t.Errorf("%s: %d tasks ahead", name, n)
		}
	}
	w := s.idleWorker(t, s.Store, 1)
	if w.hurry(); w.further() != 4 {
		t.Errorf("%d tasks ahead, want 4", w.further())
	}
}

// Reports whose slots have gone on wait for one that has not, and travel with it.
func TestGathering(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.idleWorker(t, s.Store, 1)
	o := w.reporter
	patient := func() *pendingReport {
		return &pendingReport{commit: &tasks.Commit{}, patient: true, turn: make(chan bool, 1), since: time.Now().Add(time.Hour)}
	}
	a, b, c := patient(), patient(), patient()
	if o.enter(a) || o.enter(b) || o.sending {
		t.Fatal("a report that may wait is sent at once")
	}
	if urgent := (&pendingReport{commit: &tasks.Commit{}, turn: make(chan bool, 1)}); !o.enter(urgent) {
		t.Error("a report whose slot waits is not sent at once")
	} else if batch := o.take(); len(batch) != 3 || batch[0] != urgent {
		t.Errorf("sends %d reports", len(batch))
	}
	if o.enter(c) {
		t.Error("two calls at a time")
	}
	o.sendNext()
	if o.sending {
		t.Error("a report that may wait is sent as soon as there is no call under way")
	}
	o.mu.Lock()
	c.since = time.Now().Add(-mostGather)
	o.next()
	o.mu.Unlock()
	if !wait.Receive(t, patience, c.turn, "it waits for ever") {
		t.Error("nobody sends it")
	}
}

// Replies are lost of the calls that report and claim ahead: each task runs once.
func TestAheadLostReplies(t *testing.T) {
	t.Parallel()
	for _, lost := range []int{1, 10} { // one is repeated by the client, ten by the worker itself
		t.Run(strconv.Itoa(lost), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := s.script(t, "p", `echo $TDF_TASK_ID.$TDF_ROUND >> "$1"`)
			proxy, st := s.behindProxy(t)
			w := s.startOn(t, st, aheadTime(time.Hour))
			ledger := filepath.Join(t.TempDir(), "ledger")
			s.await(t, s.open(t, p, input(ledger)), sm.Executed)
			w.hurry()
			var drops []*redistest.Fault
			for range lost {
				drops = append(drops, proxy.DropReply(callWith(string(sm.Report))))
			}
			specs := slices.Repeat([]task.Definition{storetest.Spec(p, input(ledger))}, 20)
			ids := s.Open(t, specs...)
			want := "1.0\n"
			for _, id := range ids {
				s.await(t, id, sm.Executed)
				want += fmt.Sprintf("%d.0\n", id)
			}
			if got := awaitFile(t, ledger); got != want {
				t.Errorf("ran %q, want each task once and in order", got)
			}
			for i, d := range drops {
				if !d.Happened() {
					t.Errorf("reply %d was not lost", i)
				}
			}
			if f := s.Task(t, ids[len(ids)-1]).Fields; f["0:begun"] == "" {
				t.Error("the last task was not claimed ahead")
			}
		})
	}
}

// Redis goes away while tasks wait that were claimed ahead: each runs once, and no result is lost.
func TestAheadWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	proxy, st := s.behindProxy(t)
	w, release, ledger := s.suppliedOn(t, st, aheadTime(time.Hour))
	proxy.Down()
	touch(t, release)
	w.log.await(t, "lost the connection to redis")
	proxy.Up()
	for id := int64(3); id <= 7; id++ {
		s.await(t, id, sm.Executed)
	}
	// Back on the line the worker looks for new rules, and hands back what has not begun by then.
	ran := strings.Fields(awaitFile(t, ledger))
	slices.Sort(ran)
	want := make([]string, 0, len(ran))
	for id := int64(4); id <= 7; id++ {
		want = append(want, fmt.Sprintf("%d.%d", id, s.Task(t, id).Round))
	}
	if !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
}

// Rounds begin in the order of their claims, whatever brings a slot its next task; one that has waited for too long does not begin.
func TestPoolKeepsOrder(t *testing.T) {
	t.Parallel()
	p := newPool([]*slot{{}}, time.Hour)
	s := p.take(&assignment{claimed: &Claimed{}})
	some := make([]*assignment, 4)
	for i := range some {
		some[i] = newAssignment(&Claimed{}, newClock(0), 0)
	}
	for _, a := range some[:2] {
		if at, kept := p.place(a, true); at != nil || !kept {
			t.Fatal("a task has a slot, or does not wait for one")
		}
	}
	if p.keep(s, some[2]) != some[0] || p.next(s) != some[1] || p.rest(s, true) != some[2] || p.rest(s, true) != nil {
		t.Error("rounds begin in another order")
	}
	if at, kept := p.place(some[3], true); at != s || kept {
		t.Error("a task waits although a slot is idle")
	}
	p.place(newAssignment(&Claimed{Task: sm.Task{Current: sm.Round{Running: -7200 * sm.Time(sm.Second)}}}, newClock(0), 0), true)
	if p.next(s) != nil {
		t.Error("a task begins too late")
	}
}

// A task that takes several slots begins once so many are idle, which are given to no other meanwhile, and back when it is over.
func TestPoolGathersSlots(t *testing.T) {
	t.Parallel()
	some := []*slot{{index: 0}, {index: 1}, {index: 2}}
	p := newPool(some, time.Hour)
	small := newAssignment(&Claimed{}, newClock(0), 0)
	wide := newAssignment(&Claimed{Resources: map[string]task.Allotted{task.CPUs: {Count: 2}}}, newClock(0), 0)
	first, second := p.take(small), p.take(small)
	if at, kept := p.place(wide, false); at != nil || !kept || p.vacant() != 0 {
		t.Fatalf("it has slot %v, is kept: %v, and %d slots are left", at, kept, p.vacant())
	}
	p.set(first, reporting)
	if p.rest(first, true) != wide || p.count(executing) != 2 || p.count(lent) != 1 || p.vacant() != 0 {
		t.Error("it does not begin in two slots")
	}
	p.set(second, idle)
	if p.set(first, reporting); p.count(idle) != 2 || p.vacant() != 2 {
		t.Errorf("%d slots are idle, want 2", p.count(idle))
	}
	if at, _ := p.place(wide, false); at == nil || p.vacant() != 0 || p.byQueue()[task.DefaultQueue] != 2 {
		t.Errorf("it begins in slot %v, %d are left; by queue %v", at, p.vacant(), p.byQueue())
	}
}

// Nothing is quiet while a task is on its way back: a worker that registers anew would be told that it had lost it.
func TestQuietOnceHandedBack(t *testing.T) {
	t.Parallel()
	p := newPool(nil, time.Hour)
	a := newAssignment(&Claimed{}, newClock(0), 0)
	p.place(a, true)
	if p.quiet() {
		t.Error("quiet with a task that was claimed ahead")
	}
	if p.drop(); p.quiet() {
		t.Error("quiet with a task that goes back")
	}
	if p.reported(); !p.quiet() {
		t.Error("not quiet once it is back")
	}
	if p.place(a, false); p.quiet() {
		t.Error("quiet with a task that cannot wait")
	}
}

// BenchmarkPrograms says how many calls to Redis a short program takes, heartbeats included, in two slots.
func BenchmarkPrograms(b *testing.B) {
	for _, ahead := range []int{0, config.MaxAhead} {
		b.Run(fmt.Sprintf("ahead=%d", ahead), func(b *testing.B) {
			s := siteOn(b, storetest.On(b, redistest.Start(b)))
			c := newCounted(b, s)
			var last int64
			for part := range slices.Chunk(slices.Repeat([]task.Definition{storetest.Spec(s.script(b, "p", "exit 0"))}, b.N), tasks.MaxOpen) {
				last = s.Open(b, part...)[len(part)-1]
			}
			b.ResetTimer()
			w := s.startOn(b, c.Store, func(o *options) { o.Slots, o.Ahead, o.Backend = 2, ahead, c })
			w.hurry()
			s.await(b, last, sm.Executed)
			b.ReportMetric(float64(c.waits.sent.Load()+c.others.sent.Load())/float64(b.N), "calls/op")
		})
	}
}
