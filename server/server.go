package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
)

// ErrStarted means that a server was run before; make a new one.
var ErrStarted = errors.New("this server has been started before")

// Server settles the tasks of one namespace. It runs once.
type Server struct {
	started  atomic.Bool
	ready    chan struct{} // closed when Redis has been checked, for tests
	opt      Options
	store    *store.Store
	log      zerolog.Logger
	suspects *suspects
	steady   *steady
	steps    steps
	nodes    *nodeJudge
	history  *historian
	// announced are the lost workers that the log has named: incarnation by name.
	announced map[string]int64
	// copies is where archived tasks are written before they leave Redis; nil for nowhere.
	copies *copies
}

// New returns a server, or an error that names the option that cannot be.
func New(opt Options) (*Server, error) {
	if err := opt.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		opt: opt, store: opt.Store, log: opt.Log, suspects: newSuspects(),
		ready: make(chan struct{}),
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
	s.steady = newSteady(opt.WorkerTimeout, s.sayUnsteady)
	return s, nil
}

// Run works until ctx ends, then returns nil. Before it begins it checks Redis
// and returns what [store.Store.Check] refuses. Later faults of Redis are
// logged and waited out. A second Run returns [ErrStarted].
func (s *Server) Run(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return ErrStarted
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
	for _, loop := range []func(context.Context, chan struct{}){s.listen, s.maintain, s.rounds, s.remind, s.retire, s.history.keep} {
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
		s.log.Debug().Err(err).Msg("could not end the wait early")
	}
}

// check refuses a Redis that the server cannot work with.
func (s *Server) check(ctx context.Context) error {
	info, err := s.store.Check(ctx)
	if err != nil {
		return err
	}
	for _, w := range info.Warnings {
		s.log.Warn().Str("redis", info.Version).Msg(w)
	}
	close(s.ready)
	return nil
}

// sayUnsteady says why workers are not judged. Every start has its own line.
func (s *Server) sayUnsteady(reason string, wait time.Duration) {
	level := zerolog.WarnLevel
	if reason == reasonStart {
		level = zerolog.InfoLevel
	}
	s.log.WithLevel(level).Msgf("no verdict on workers for %v: %s", wait, reason)
}

// pollInterval bounds how long a lost wake-up can delay work.
const pollInterval = time.Second

// listen turns wake-ups from Redis, and a poll each second, into signals.
func (s *Server) listen(ctx context.Context, wake chan struct{}) {
	redis := link.New(zerolog.Nop()) // the passes say it
	for ctx.Err() == nil {
		if _, err := s.store.WaitServer(ctx, pollInterval); err != nil {
			if ctx.Err() == nil {
				s.steady.failed()
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
