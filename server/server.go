package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
)

// waiting is how a server waits for work, and is told of it.
type waiting interface {
	Check(ctx context.Context) (conn.ServerInfo, error)
	WaitServer(ctx context.Context, d time.Duration) (bool, error)
	InterruptServer(ctx context.Context) error
	Remind(ctx context.Context, late statemachine.Duration) (statemachine.Duration, error)
}

// ErrStarted means that a server was run before; make a new one.
var ErrStarted = errors.New("this server has been started before")

// Server settles the tasks of one namespace. It runs once.
type Server struct {
	started  atomic.Bool
	close    func() error  // of the connections, nil for those of others
	ready    chan struct{} // closed when Redis has been checked, for tests
	opt      options
	store    backend
	log      *slog.Logger
	suspects *suspects
	guard    *contactGuard
	steps    steps
	nodes    *nodeJudge
	peers    peers
	history  *historian
	// announced are the lost workers that the log has named: incarnation by name.
	announced map[string]int64
	stats     stats
	// copies is where archived tasks are written before they leave Redis; nil for nowhere.
	copies *archiver
}

// assemble makes a server of complete options.
func assemble(opt options) (*Server, error) {
	if err := opt.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		opt: opt, store: opt.store, log: opt.Logger, suspects: newSuspects(),
		ready: make(chan struct{}), stats: newStats(),
	}
	s.nodes = newNodeJudge(s)
	s.history = newHistorian(&s.opt)
	if err := s.history.load(); err != nil {
		return nil, err
	}
	if opt.ArchiveDir != "" {
		var err error
		if s.copies, err = newCopies(&opt); err != nil {
			return nil, err
		}
	}
	s.guard = newContactGuard(opt.WorkerTimeout, s.logNoVerdict)
	return s, nil
}

// Run works until ctx ends, then returns nil. Before it begins it checks Redis
// and returns what [conn.Conn.Check] refuses. Later faults of Redis are
// logged and waited out. A second Run returns [ErrStarted].
func (s *Server) Run(ctx context.Context) (err error) {
	if !s.started.CompareAndSwap(false, true) {
		return ErrStarted
	}
	if s.close != nil {
		defer func() { err = errors.Join(err, s.close()) }()
	}
	// Once ctx has ended, Check may say anything and the loops end at once.
	if err := s.check(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("server %s: %w", s.opt.Name, err)
	}
	wake := make(chan struct{}, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		<-ctx.Done()
		s.interrupt() //nolint:contextcheck // ctx is done by now
	})
	for _, loop := range []func(context.Context, chan struct{}){s.listen, s.maintain, s.passes, s.remind, s.retire, s.history.keep} {
		wg.Go(func() { loop(ctx, wake) })
	}
	wg.Wait()
	return nil
}

// interrupt lets a server that is to stop not wait to the end of its poll. It
// may reach another server instead, which then makes a pass for nothing.
func (s *Server) interrupt() {
	ctx, cancel := context.WithTimeout(context.Background(), pollInterval)
	defer cancel()
	if err := s.store.InterruptServer(ctx); err != nil {
		s.log.Debug("could not end the wait early", "error", err)
	}
}

// check refuses a Redis that the server cannot work with.
func (s *Server) check(ctx context.Context) error {
	info, err := s.store.Check(ctx)
	if err != nil {
		return err
	}
	for _, w := range info.Warnings {
		s.log.Warn(w, "redis", info.Version)
	}
	close(s.ready)
	return nil
}

// logNoVerdict says why workers are not judged. Every start has its own line.
func (s *Server) logNoVerdict(reason string, wait time.Duration) {
	level := slog.LevelWarn
	if reason == reasonStart {
		level = slog.LevelInfo
	}
	s.log.Log(context.Background(), level, fmt.Sprintf("no verdict on workers for %v: %s", wait, reason))
}

// pollInterval bounds how long a lost wake-up can delay work.
const pollInterval = time.Second

// listen turns wake-ups from Redis, and a poll each second, into signals.
func (s *Server) listen(ctx context.Context, wake chan struct{}) {
	redis := link.New(slog.New(slog.DiscardHandler)) // the passes say it
	for ctx.Err() == nil {
		if _, err := s.store.WaitServer(ctx, pollInterval); err != nil {
			if ctx.Err() == nil {
				s.guard.failed()
			}
			timing.Pause(ctx, redis.Failed(err))
			continue
		}
		redis.Answered()
		select {
		case wake <- struct{}{}: // what wakes us meanwhile waits in Redis
		case <-ctx.Done():
		}
	}
}

// note tells the link how a pass ended. What fails because the server stops is
// no fault.
func note(ctx context.Context, redis *link.Link, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		redis.Failed(err) // the next pass comes with the next wake-up or poll
	default:
		redis.Answered()
	}
}

// passes makes passes: when woken, when the next deadline comes, and at the end
// of each interval of round_duration. A log line then says how many tasks were
// settled in it.
func (s *Server) passes(ctx context.Context, wake chan struct{}) {
	redis := link.New(s.log)
	for n := 0; ctx.Err() == nil; n++ {
		processed, end := 0, s.opt.after(s.opt.RoundDuration)
		for over := false; !over && ctx.Err() == nil; {
			began := time.Now()
			moved, next, err := s.pass(ctx)
			processed += moved
			rest := restAfter(moved, time.Since(began))
			if err != nil && ctx.Err() == nil {
				s.guard.failed()
			}
			if ctx.Err() == nil {
				s.stats.passed(err)
			}
			if s.history.watch(ctx, err) {
				err, next = nil, 0 // Redis answers; the pass is made again
			}
			note(ctx, redis, err)
			over = !timing.Pause(ctx, rest) || s.sleep(ctx, wake, end, next)
		}
		if ctx.Err() == nil {
			s.log.Info("processed", "interval", n, "tasks", processed)
		}
	}
}

// While there is much to do, a pass costs nearly the same for one task as for twenty. So passes that move something
// take a quarter of the time, for the Redis that all share, and the next one finds more to move. The first
// one comes at once.
const (
	restTimes = 3
	mostRest  = 10 * time.Millisecond
)

// restAfter is how long to rest after a pass.
func restAfter(moved int, took time.Duration) time.Duration {
	if moved == 0 {
		return 0
	}
	return min(restTimes*took, mostRest)
}

// sleep returns when there is a reason for another pass; it reports whether
// the round is over.
func (s *Server) sleep(ctx context.Context, wake chan struct{}, end <-chan time.Time, next time.Duration) bool {
	var deadline <-chan time.Time
	if next < s.opt.RoundDuration {
		t := time.NewTimer(next)
		defer t.Stop()
		deadline = t.C
	}
	select {
	case <-ctx.Done():
		return true
	case <-end:
		return true
	case <-wake:
		return false
	case <-deadline:
		return false
	}
}

// pass settles everything that is due, and judges the nodes that fail. It returns how many tasks it moved and
// how long it is until there is something to look at again: a deadline, the end
// of a lease.
func (s *Server) pass(ctx context.Context) (moved int, next time.Duration, err error) {
	moved, err = s.settleExecuted(ctx)
	if err != nil {
		return moved, never, err
	}
	n, at, now, err := s.settleDue(ctx)
	moved += n
	if err != nil {
		return moved, never, err
	}
	n, more, err := s.advancePlans(ctx)
	moved += n
	if err != nil {
		return moved, never, err
	}
	again, err := s.nodes.judgeAll(ctx, now)
	if err != nil {
		return moved, never, err
	}
	n, next, err = s.takeBack(ctx)
	moved += n
	if err != nil {
		return moved, never, err
	}
	if more {
		next = 0
	}
	// Silence of Redis must be noticed well within a lease.
	return moved, min(next, again, until(at, now), s.opt.WorkerTimeout/6), nil
}

// never is a wait for nothing.
const never time.Duration = math.MaxInt64

// until is how long it is until a moment, 0 if it has come.
func until(at, now statemachine.Time) time.Duration { return max(0, timing.ToStd(at.Sub(now))) }

const (
	// overdue is how late a task is when a server wakes another worker for it: one
	// that was woken, or knew when it starts, has claimed it by then.
	overdue = 100 * statemachine.Millisecond
	// reminderPause is the shortest time between two looks for such tasks.
	reminderPause = 100 * time.Millisecond
)

// remind sees to it that no due task waits for a worker that was woken for it and does
// not come, when that worker is not the only one that waits. It looks each second, and
// when the next task will be late.
func (s *Server) remind(ctx context.Context, _ chan struct{}) {
	for ctx.Err() == nil {
		pause := pollInterval
		if next, err := s.store.Remind(ctx, overdue); err == nil { // the passes say what is wrong with Redis
			pause = max(min(pause, timing.ToStd(next)), reminderPause)
		}
		timing.Pause(ctx, pause)
	}
}
