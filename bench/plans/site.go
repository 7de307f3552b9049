package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tdf-go/tdf/bench/crew"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/worker"
)

// site is a namespace on a Redis of its own, with a manager.
type site struct {
	*crew.Site
	m    *manager.Manager
	o    options
	slow *slowlog
	// preferred says that others take no time from Redis.
	preferred bool
}

func newSite(ctx context.Context, o options) (*site, error) {
	on, err := crew.NewSite(ctx)
	if err != nil {
		return nil, err
	}
	s := &site{Site: on, o: o, preferred: on.Redis.Prefer()}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *site) open(ctx context.Context) (err error) {
	if s.slow, err = watchSlow(ctx, s.Redis.DB, s.Store.ScriptNames(), s.o.slowFrom()); err != nil {
		return err
	}
	s.m, err = s.Manager(ctx, "bench")
	return err
}

func (s *site) close() (err error) {
	if s.m != nil {
		err = s.m.Close()
	}
	return errors.Join(err, s.Close())
}

// start starts the servers, and as many workers with the handler of a graph. ctx ends if one of them fails.
func (s *site) start(ctx context.Context, workers int, g graph) (context.Context, *crew.Crew, error) {
	return s.Start(ctx, crew.Fleet{
		Servers: s.o.servers, Workers: workers, Slots: s.o.slots, Handlers: map[string]worker.Handler{program: g.number},
	})
}

// pollEvery is how often a run looks whether it is over.
const pollEvery = 20 * time.Millisecond

// await waits until so many tasks are in a state, and none has ended badly.
func (s *site) await(ctx context.Context, state statemachine.State, n int) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		c, err := s.Store.Census(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if err := s.slow.take(ctx); err != nil {
			return err
		}
		if bad := c.Listed[statemachine.Failed]; bad > 0 {
			return fmt.Errorf("%d tasks failed", bad)
		}
		if c.Listed[state] >= int64(n) {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
