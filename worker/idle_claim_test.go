package worker

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// trips counts what a client sends at once, and what of that was answered.
type trips struct{ sent, answered atomic.Int64 }

func (p *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		p.sent.Add(1)
		defer p.answered.Add(1)
		return next(ctx, cmd)
	}
}

func (p *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p.sent.Add(1)
		defer p.answered.Add(1)
		return next(ctx, cmds)
	}
}

// quiet is a site that says nothing by itself: that a subscription has begun is a reason to read the rules, and to wait no longer.
type quiet struct{ *store.Store }

func (quiet) Listen(ctx context.Context, _ string, _, _ func(), _ func(string)) { <-ctx.Done() }

// counted is a quiet site that counts the trips to it, those that wait and the others but heartbeats.
type counted struct {
	quiet

	waits, others *trips
}

func newCounted(t testing.TB, s *site) *counted {
	t.Helper()
	c := &counted{quiet{s.Dial(t)}, &trips{}, &trips{}}
	c.Patient.AddHook(c.waits)
	c.Redis.AddHook(c.others)
	return c
}

// idler is a worker on a Redis of its own that has run a task, which made the bucket known, and waits for long.
func (s *site) idler(t *testing.T, st *store.Store, p Handler, change ...func(*options)) (w *running, blocks <-chan string) {
	t.Helper()
	blocks = s.Server.Blocks(t)
	first := s.open(t, forHandler("p"))
	d := storetest.Spec(forHandler("p"))
	s.Raw.Del(t.Context(), s.Key("wake:"+d.Bucket().Name())) // it needs none
	of := map[string]Handler{"p": func(ctx context.Context, j *Job) error {
		if j.Task.ID == first {
			return nil
		}
		return p(ctx, j)
	}}
	w = s.startOn(t, st, append(change, setting(t, "sleep_initial=600", "sleep_max=600"), handlers(of))...)
	s.await(t, first, sm.Executed)
	wait.Receive(t, time.Minute, blocks, "it does not wait")
	return w, blocks
}

// counting is a handler that counts its runs.
func counting(runs *atomic.Int64) Handler {
	return func(context.Context, *Job) error {
		runs.Add(1)
		return nil
	}
}

// An idle worker has a task one trip after it was opened, and waits on, if it has a slot left, without another claim. A wait that
// brings nothing is one trip too.
func TestIdleWorkerClaimsInOneTrip(t *testing.T) {
	t.Parallel()
	s := siteOn(t, storetest.On(t, redistest.Start(t)))
	c := newCounted(t, s)
	began, end := make(chan int64), make(chan struct{})
	_, blocks := s.idler(t, c.Store, func(context.Context, *Job) error {
		began <- c.waits.answered.Load()
		<-end
		return nil
	}, func(o *options) { o.Slots, o.Backend = 2, c })
	defer close(end)
	waits, others := c.waits.answered.Load(), c.others.sent.Load()
	s.open(t, forHandler("p"))
	if n := wait.Receive(t, patience, began, "the task does not begin") - waits; n != 1 {
		t.Errorf("begins after %d trips that wait, want 1", n)
	}
	wait.Receive(t, patience, blocks, "it does not wait with the slot that is left")
	if n := c.others.sent.Load() - others; n != 0 {
		t.Errorf("%d other trips before it waits again, want none", n)
	}
}

func TestIdleWaitIsOneTrip(t *testing.T) {
	t.Parallel()
	s := siteOn(t, storetest.On(t, redistest.Start(t)))
	c := newCounted(t, s)
	s.startOn(t, c.Store, setting(t, "sleep_initial=0.01", "sleep_max=0.02"), func(o *options) { o.Backend = c })
	some := func(n int64) {
		wait.Eventually(t, patience, func() bool { return c.waits.answered.Load() > n }, "it does not wait")
	}
	some(2)
	waits, others := c.waits.answered.Load(), c.others.sent.Load()
	some(waits + 10)
	if n := c.others.sent.Load() - others; n != 0 {
		t.Errorf("%d trips beside those that wait, want none", n)
	}
}

// A worker that stops, drains or rests while it waits takes nothing on its way: neither what is due without its knowledge, nor what
// is opened then.
func TestHaltedWorkerClaimsNothing(t *testing.T) {
	t.Parallel()
	for name, halt := range map[string]func(*testing.T, *site, *running){
		"drained": func(t *testing.T, s *site, w *running) {
			s.command(t, task.CommandDrain)
			w.log.await(t, "claiming nothing")
		},
		"stopped by an operator": func(t *testing.T, s *site, w *running) {
			s.command(t, task.CommandStop)
			if err := wait.Receive(t, patience, w.done, "it does not stop"); err != nil {
				t.Error(err)
			}
		},
		"stopped": func(t *testing.T, _ *site, w *running) { w.stop(t) },
		"without programs": func(t *testing.T, _ *site, w *running) {
			for range 20 { // it would be over too soon otherwise
				w.shortage.pause.Next()
			}
			w.shortage.begin(errors.New("no more processes"))
			w.endWait()
			w.log.await(t, "claiming nothing")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := siteOn(t, storetest.On(t, redistest.Start(t)))
			spec := forHandler("p")
			var runs atomic.Int64
			w, blocks := s.idler(t, s.Dial(t), counting(&runs))
			opened := []int64{s.unannounced(t, blocks, spec)}
			halt(t, s, w)
			opened = append(opened, s.open(t, spec))
			wait.Never(t, 300*time.Millisecond, func() bool { return runs.Load() > 0 }, "a task has begun")
			for _, id := range opened {
				if got := s.Task(t, id); got.State != sm.Open || got.Round != 0 || strings.Contains(got.Fields["log"], "running") {
					t.Errorf("task %d is %s:\n%s", id, got.State, got.Fields["log"])
				}
			}
		})
	}
}

// unannounced makes a task due of which nobody knows: one that starts late, put forward by hand once the worker waits again.
func (s *site) unannounced(t *testing.T, blocks <-chan string, spec func(*task.Definition)) int64 {
	t.Helper()
	d := storetest.Spec(spec)
	id := s.open(t, spec, func(d *task.Definition) { storetest.Set(d, "start_after", "4000000000") })
	wait.Receive(t, patience, blocks, "it does not wait again")
	s.Raw.HSet(t.Context(), s.Key("task:"+strconv.FormatInt(id, 10)), "start_after", "0")
	ready := s.Key("ready:" + d.Bucket().Name())
	for _, member := range s.Raw.ZRange(t.Context(), ready, 0, -1).Val() {
		s.Raw.ZAdd(t.Context(), ready, redis.Z{Score: 1, Member: member})
	}
	return id
}

// late is a quiet site on which something comes between the claim behind a wait and its answer.
type late struct {
	quiet

	between atomic.Pointer[func()]
}

func (l *late) WaitAndClaim(ctx context.Context, w WaitFor, d time.Duration, req ClaimRequest) Waited {
	got := l.Store.WaitAndClaim(ctx, w, d, req)
	if f := l.between.Load(); f != nil && len(got.Reply.Tasks) > 0 {
		(*f)()
	}
	return got
}

// What a worker gets although it may claim nothing any more, because that came too late to be told, goes back at no charge.
func TestClaimedTooLateIsHandedBack(t *testing.T) {
	t.Parallel()
	s := siteOn(t, storetest.On(t, redistest.Start(t)))
	l := &late{quiet: quiet{s.Dial(t)}}
	var runs atomic.Int64
	w, _ := s.idler(t, l.Store, counting(&runs), func(o *options) { o.Backend = l })
	rest := func() {
		l.between.Store(nil)
		w.shortage.begin(errors.New("no more processes"))
	}
	l.between.Store(&rest)
	id := s.open(t, forHandler("p"))
	w.log.await(t, "running -> open")
	got := s.await(t, id, sm.Executed)
	if got.Round != 1 || got.Fields["releases"] != "1" || runs.Load() != 1 {
		t.Errorf("round %d, %s releases, ran %d times", got.Round, got.Fields["releases"], runs.Load())
	}
	checkContains(t, "log", got.Fields["log"], "handing back task 2: this host cannot run programs now: no more processes")
}

// An answer that is lost while a worker waits loses no task and runs none twice, whichever it is.
func TestLostRepliesOfAWait(t *testing.T) {
	t.Parallel()
	for name, match := range map[string]func(*site) redistest.Match{
		"wait":  func(*site) redistest.Match { return redistest.Command("BLPOP") },
		"claim": func(s *site) redistest.Match { return callWith(s.Key("claim:w")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := siteOn(t, storetest.On(t, redistest.Start(t)))
			proxy, st := s.behindProxy(t)
			var runs atomic.Int64
			s.idler(t, st, counting(&runs))
			drop := proxy.DropReply(match(s))
			id := s.open(t, forHandler("p"))
			got := s.await(t, id, sm.Executed)
			if n := strings.Count(got.Fields["log"], "open -> running"); !drop.Happened() || n != 1 || runs.Load() != 1 || got.Round != 0 {
				t.Errorf("lost %v, claimed %d times, ran %d times, round %d", drop.Happened(), n, runs.Load(), got.Round)
			}
		})
	}
}

// No claim goes along with a report while one waits for work, and one that has no answer is repeated as it was.
func TestClaimBehindAWait(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.claimer(t)
	if _, _, ok := c.wait(t.Context(), WaitFor{Worker: "w"}, time.Millisecond, 0, 1); ok {
		t.Error("it waits by rules that were never read")
	}
	claim(t, c)
	b := &silent{Claims: s.Store, asked: make(chan ClaimRequest), answer: make(chan Waited)}
	c.backend = b
	got := make(chan error, 1)
	go func() {
		w, _, _ := c.wait(t.Context(), WaitFor{Worker: "w"}, time.Millisecond, 0, 1)
		got <- w.Claimed
	}()
	sent := wait.Receive(t, patience, b.asked, "it does not wait")
	if !c.inDoubt() || c.begin(0, 1, 0) != nil {
		t.Error("another claim beside the one that waits")
	}
	b.answer <- Waited{Err: errors.New("no answer"), Claimed: errors.New("no answer")}
	if err := wait.Receive(t, patience, got, "no answer"); err == nil || !c.inDoubt() || c.begin(0, 1, 0) != nil {
		t.Errorf("error %v, in doubt %v", err, c.inDoubt())
	}
	if sent.Waited || !c.pending.Waited || c.pending.Request != sent.Request {
		t.Errorf("sent %+v, to be repeated as %+v", sent, c.pending)
	}
	claim(t, c)
	if c.inDoubt() {
		t.Error("in doubt after an answer")
	}
}

// silent answers a wait when it is told to.
type silent struct {
	Claims
	asked  chan ClaimRequest
	answer chan Waited
}

func (s *silent) WaitAndClaim(_ context.Context, _ WaitFor, _ time.Duration, req tasks.ClaimRequest) Waited {
	s.asked <- req
	return <-s.answer
}

// A worker that stops while Redis is gone gives up once the time for reports is over.
func TestStopWithoutRedis(t *testing.T) {
	t.Parallel()
	s := siteOn(t, storetest.On(t, redistest.Start(t)))
	t.Cleanup(func() { s.Server.Restart(t) }) // what comes after a test looks at its Redis
	w, _ := s.idler(t, s.Dial(t), counting(&atomic.Int64{}), func(o *options) { o.stopTimeout = time.Minute })
	s.Server.Kill(t)
	w.cancel()
	w.log.await(t, "draining")
	wait.Eventually(t, patience, w.pool.close, "it does not come to its end")
	w.stopReports()
	if err := wait.Receive(t, patience, w.done, "the worker does not stop"); err != nil {
		t.Error(err)
	}
}
