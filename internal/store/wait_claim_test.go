package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	await "github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// sleeper is an idle worker with a session, on a Redis of its own.
type sleeper struct {
	t      *testing.T
	sp     *storetest.Space
	st     *store.Store // its connections
	blocks <-chan string
	req    tasks.ClaimRequest
}

func newSleeper(t *testing.T) *sleeper {
	t.Helper()
	sp := storetest.On(t, redistest.Start(t))
	w := sp.Register(t, "w")
	return &sleeper{t: t, sp: sp, st: sp.Store, blocks: sp.Server.Blocks(t), req: requestOf(w.Incarnation)}
}

func requestOf(incarnation int64) tasks.ClaimRequest {
	return tasks.ClaimRequest{
		Worker: "w", Request: conn.NewToken(), Max: 5, Candidates: storetest.Free(task.Bucket{}), Incarnation: incarnation,
	}
}

// sleep begins to wait, and returns when Redis knows it.
func (s *sleeper) sleep(ctx context.Context, d time.Duration) <-chan tasks.Waited {
	s.t.Helper()
	answers := make(chan tasks.Waited, 1)
	req := s.req
	go func() { answers <- s.st.WaitAndClaim(ctx, waitFor("w"), d, req) }()
	await.Receive(s.t, time.Minute, s.blocks, "it does not wait")
	return answers
}

// unannounced opens a task and takes the wake-up away.
func (s *sleeper) unannounced() int64 {
	s.t.Helper()
	id := s.sp.Open(s.t, storetest.Spec())[0]
	s.sp.Raw.Del(s.t.Context(), string(wakeUp(s.sp.Store)))
	return id
}

// gets checks what a wait and its claim have brought.
func (s *sleeper) gets(answers <-chan tasks.Waited, woken tasks.WakeUp, ids ...int64) tasks.Waited {
	s.t.Helper()
	got := await.Receive(s.t, time.Minute, answers, "it waits on")
	if err := errors.Join(got.Err, got.Claimed); err != nil || got.Woken != woken || !slices.Equal(claimedIDs(got.Reply.Tasks), ids) {
		s.t.Errorf("woken by %q, %+v, error %v; want %q, %v", got.Woken, got.Reply, err, woken, ids)
	}
	return got
}

// untouched checks that the task was never claimed, and can be now.
func (s *sleeper) untouched(id int64) {
	s.t.Helper()
	if log := s.sp.Task(s.t, id).Fields["log"]; strings.Contains(log, "running") {
		s.t.Errorf("task %d was claimed:\n%s", id, log)
	}
	if got := s.sp.Claim(s.t, "other", 5); !slices.ContainsFunc(got, func(c tasks.Claimed) bool { return c.Task.ID == id }) {
		s.t.Errorf("task %d cannot be claimed: %+v", id, got)
	}
}

// trips counts what was sent at once and answered.
type trips struct{ n atomic.Int64 }

func (p *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer p.n.Add(1)
		return next(ctx, cmd)
	}
}

func (p *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer p.n.Add(1)
		return next(ctx, cmds)
	}
}

// TestWaitAndClaimIsOneTrip: a wait brings its task, or the answer that nothing is due, without a second request.
func TestWaitAndClaimIsOneTrip(t *testing.T) {
	t.Parallel()
	s := newSleeper(t)
	s.st = s.sp.Dial(t)
	s.gets(s.sleep(t.Context(), time.Millisecond), "") // it is connected now
	sent := &trips{}
	for _, client := range []redis.UniversalClient{s.st.Redis, s.st.Session, s.st.Patient} {
		client.AddHook(sent)
	}
	for name, step := range map[string]func(){
		"woken": func() {
			answers := s.sleep(t.Context(), time.Minute)
			s.gets(answers, wakeUp(s.st), s.sp.Open(t, storetest.Spec())...)
		},
		"timed out": func() {
			s.gets(s.sleep(t.Context(), time.Millisecond), "")
		},
		"timed out, and a wake-up was lost": func() {
			id := s.unannounced()
			s.gets(s.sleep(t.Context(), time.Millisecond), "", id)
		},
	} {
		s.req.Request = conn.NewToken()
		before := sent.n.Load()
		step()
		if n := sent.n.Load() - before; n != 1 {
			t.Errorf("%s: %d trips, want 1", name, n)
		}
	}
}

// TestLongWaitClaimsAtItsEnd: the parts of a wait before the last one claim nothing, unless something ends them.
func TestLongWaitClaimsAtItsEnd(t *testing.T) {
	t.Parallel()
	s := newSleeper(t)
	now, err := s.st.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wait := waitFor("w")
	wait.Now = now
	id := s.unannounced()
	answers := make(chan tasks.Waited, 1)
	go func() { answers <- s.st.WaitAndClaim(t.Context(), wait, 6*time.Second, s.req) }()
	for range 2 {
		await.Receive(t, time.Minute, s.blocks, "it does not wait")
		checkState(t, s.sp, id, statemachine.Open)
	}
	s.gets(answers, "", id)
	wait.Now -= 60e6 // each part seems to be over; but what woke the worker counts
	s.req.Request = conn.NewToken()
	go func() { answers <- s.st.WaitAndClaim(t.Context(), wait, time.Hour, s.req) }()
	await.Receive(t, time.Minute, s.blocks, "it does not wait")
	s.gets(answers, wakeUp(s.st), s.sp.Open(t, storetest.Spec())...)
}

// TestInterruptedClaimsNothing: who is interrupted gets nothing that was due, in whichever order that, a wake-up and the claim
// come; a claim that was carried out before stays, and later ones are not touched.
func TestInterruptedClaimsNothing(t *testing.T) {
	t.Parallel()
	s := newSleeper(t)
	interrupt := func() {
		t.Helper()
		if err := s.sp.Store.Interrupt(t.Context(), "w", s.req.Request); err != nil {
			t.Fatal(err)
		}
	}
	id := s.unannounced()
	ctx, cancel := context.WithCancel(t.Context())
	answers := s.sleep(ctx, time.Minute)
	cancel()
	if got := s.gets(answers, ""); !got.Reply.Stale {
		t.Errorf("interrupted: %+v", got.Reply)
	}
	s.untouched(id)

	s.req.Request = conn.NewToken()
	interrupt() // but a wake-up comes first
	s.sp.Raw.Del(t.Context(), s.sp.Key("halt:w"))
	id = s.sp.Open(t, storetest.Spec())[0]
	if got := s.gets(s.sleep(t.Context(), time.Minute), wakeUp(s.st)); !got.Reply.Stale {
		t.Errorf("woken after an interruption: %+v", got.Reply)
	}
	s.untouched(id)

	s.req.Request = conn.NewToken()
	id = s.sp.Open(t, storetest.Spec())[0]
	first := s.gets(s.sleep(t.Context(), time.Minute), wakeUp(s.st), id)
	interrupt() // too late
	s.req.Waited = true
	again, err := s.st.Claim(t.Context(), s.req)
	if err != nil || len(again.Tasks) != 1 || again.Tasks[0].Task.Current.Claim != first.Reply.Tasks[0].Task.Current.Claim {
		t.Errorf("claimed again %+v, error %v", again, err)
	}
	s.req = requestOf(s.req.Incarnation)
	s.gets(s.sleep(t.Context(), time.Minute), "") // by the token that is left
	s.gets(s.sleep(t.Context(), time.Minute), wakeUp(s.st), s.sp.Open(t, storetest.Spec())...)
}

// TestWaitLosesNoTask: whichever answer is lost, the claim repeated has what Redis gave, and what woke the worker is known if it was said.
func TestWaitLosesNoTask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost  func(*store.Store) redistest.Match
		woken bool
	}{
		"of the wait":  {lost: func(*store.Store) redistest.Match { return redistest.Command("BLPOP") }},
		"of the claim": {lost: func(st *store.Store) redistest.Match { return script(st.Script("turn").Hash()) }, woken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSleeper(t)
			far, proxy := through(t, s.sp)
			s.st = far.Store
			s.gets(s.sleep(t.Context(), time.Millisecond), "")
			s.req.Request = conn.NewToken()
			answers := s.sleep(t.Context(), time.Minute)
			drop := proxy.DropReply(c.lost(s.st))
			id := s.sp.Open(t, storetest.Spec())[0]
			got := await.Receive(t, time.Minute, answers, "it waits on")
			if !drop.Happened() || !errors.Is(got.Claimed, task.ErrUnreachable) || (got.Err == nil) != c.woken || (got.Woken != "") != c.woken {
				t.Errorf("got %+v", got)
			}
			s.req.Waited = true
			if r, err := s.st.Claim(t.Context(), s.req); err == nil && r.Stale && !c.woken {
				s.req = requestOf(s.req.Incarnation) // Redis lost the connection before it came to the claim, which was called off
			}
			for range 2 {
				r, err := s.st.Claim(t.Context(), s.req)
				if err != nil || !slices.Equal(claimedIDs(r.Tasks), []int64{id}) {
					t.Errorf("repeated: %+v, error %v", r, err)
				}
			}
			if n := strings.Count(s.sp.Task(t, id).Fields["log"], "running"); n != 1 {
				t.Errorf("claimed %d times", n)
			}
		})
	}
}

// TestForgottenWaitTakesNothing: a wait whose connection was cut, or that Redis still knows although the worker has given it up, gets
// nothing once the worker has claimed again, and its wake-up is no loss.
func TestForgottenWaitTakesNothing(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*redistest.Proxy){"cut": (*redistest.Proxy).Cut, "unheard": (*redistest.Proxy).Hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSleeper(t)
			far, proxy := through(t, s.sp)
			s.st = far.Store
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			answers := s.sleep(ctx, time.Minute)
			cut(proxy)
			got := await.Receive(t, time.Minute, answers, "it waits on")
			if got.Err == nil || got.Claimed == nil || got.Woken != "" {
				t.Errorf("got %+v", got)
			}
			s.st, s.req.Waited = s.sp.Store, true
			if r, err := s.st.Claim(t.Context(), s.req); err != nil || !r.Stale || len(r.Tasks) > 0 {
				t.Errorf("repeated: %+v, error %v", r, err)
			}
			s.untouched(s.sp.Open(t, storetest.Spec())[0])
		})
	}
}

// TestWaitByOldRules: rules that change while a worker waits let it claim nothing.
func TestWaitByOldRules(t *testing.T) {
	t.Parallel()
	s := newSleeper(t)
	s.sp.AddQueue(t, task.ParseQueue("first", nil))
	rules, err := s.st.Rules(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	s.req.Rules = rules.Version
	answers := s.sleep(t.Context(), time.Minute)
	s.sp.AddQueue(t, task.ParseQueue("q", nil))
	id := s.sp.Open(t, storetest.Spec())[0]
	if got := s.gets(answers, wakeUp(s.st)); !got.Reply.Stale {
		t.Errorf("claimed by old rules: %+v", got.Reply)
	}
	s.untouched(id)
}

// TestWaitWithoutScripts: scripts that Redis loses during a wait are loaded, and the claim is made.
func TestWaitWithoutScripts(t *testing.T) {
	t.Parallel()
	s := newSleeper(t)
	id := s.unannounced()
	answers := s.sleep(t.Context(), time.Minute)
	s.sp.Server.Do(t, "SCRIPT", "FLUSH")
	s.sp.Raw.LPush(t.Context(), string(wakeUp(s.st)), "1")
	s.gets(answers, wakeUp(s.st), id)
}

// TestWaitIsRefused: a list of another type keeps the worker from waiting, not from claiming.
func TestWaitIsRefused(t *testing.T) {
	t.Parallel()
	s := newSleeper(t)
	id := s.unannounced()
	s.sp.Raw.Set(t.Context(), string(wakeUp(s.st)), "x", 0)
	got := await.Receive(t, time.Minute, s.sleep(t.Context(), time.Minute), "it waits on")
	if got.Err == nil || got.Claimed != nil || !slices.Equal(claimedIDs(got.Reply.Tasks), []int64{id}) {
		t.Errorf("got %+v", got)
	}
}

// TestWaitIsConfirmed: where a replica has to confirm changes, a claim behind a wait that none has is in doubt, and its tasks are not lost.
func TestWaitIsConfirmed(t *testing.T) {
	t.Parallel()
	s := newSleeper(t)
	where := s.sp.Where
	where.Durability, where.ReplicationTimeout = config.DurabilityHA, 20*time.Millisecond
	st, err := store.Dial(where, s.sp.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	s.st = st
	answers := s.sleep(t.Context(), time.Minute)
	id := s.sp.Open(t, storetest.Spec())[0]
	got := await.Receive(t, time.Minute, answers, "it waits on")
	if got.Woken != wakeUp(st) || got.Err != nil || !errors.Is(got.Claimed, task.ErrUnreachable) {
		t.Errorf("got %+v", got)
	}
	s.req.Waited = true
	if r, err := s.sp.Store.Claim(t.Context(), s.req); err != nil || !slices.Equal(claimedIDs(r.Tasks), []int64{id}) {
		t.Errorf("repeated: %+v, error %v", r, err)
	}
}
