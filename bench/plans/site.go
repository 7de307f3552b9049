package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/tdf-go/tdf/bench/redisd"
	"github.com/tdf-go/tdf/internal/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/worker"
)

// site is a namespace on a Redis of its own, with a manager.
type site struct {
	o     options
	redis *redisd.Server
	store *store.Store // reads, for the benchmark
	m     *manager.Manager
	slow  *slowlog
	temp  string
	// preferred says that others take no time from Redis.
	preferred bool
}

const namespace = "bench"

func newSite(ctx context.Context, o options) (*site, error) {
	srv, err := redisd.Start(ctx)
	if err != nil {
		return nil, err
	}
	s := &site{o: o, redis: srv}
	s.preferred = srv.Prefer()
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *site) open(ctx context.Context) (err error) {
	if s.temp, err = os.MkdirTemp("", "tdf-bench-plans-"); err != nil {
		return fmt.Errorf("directory for the workers: %w", err)
	}
	if s.store, err = s.dial(); err != nil {
		return err
	}
	if s.slow, err = watchSlow(ctx, s.redis.DB, s.store.ScriptNames(), s.o.slowFrom()); err != nil {
		return err
	}
	s.m, err = manager.New(ctx, "bench", "",
		manager.WithSettings("redis.host="+s.redis.Socket(), "tdf.namespace="+namespace),
		manager.WithLogger(slog.New(slog.DiscardHandler)))
	return err
}

func (s *site) close() error {
	var errs []error
	if s.m != nil {
		errs = append(errs, s.m.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	s.redis.Stop()
	return errors.Join(append(errs, os.RemoveAll(s.temp))...)
}

func (s *site) dial() (*store.Store, error) {
	where := config.Redis{Host: s.redis.Socket(), DialTimeout: time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute}
	return store.Dial(where, namespace, store.WithRetries(-1))
}

// daemons are servers and workers at work.
type daemons struct {
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	stores  []*store.Store
}

// start starts the servers, and as many workers with the handler of a graph. ctx ends if one of them fails.
func (s *site) start(ctx context.Context, workers int, g graph) (context.Context, *daemons, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	d := &daemons{cancel: cancel}
	var errs []error
	for i := range s.o.servers {
		errs = append(errs, s.startServer(ctx, d, fmt.Sprintf("server-%d", i+1)))
	}
	for i := range workers {
		errs = append(errs, s.startWorker(ctx, d, fmt.Sprintf("worker-%d", i+1), g))
	}
	if err := errors.Join(errs...); err != nil {
		return ctx, nil, errors.Join(err, d.stop())
	}
	return ctx, d, nil
}

func (s *site) startServer(ctx context.Context, d *daemons, name string) error {
	st, err := s.dial()
	if err != nil {
		return err
	}
	d.stores = append(d.stores, st)
	srv, err := server.New(server.Options{Name: name, Store: st, Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	d.run(ctx, srv.Run)
	return nil
}

func (s *site) startWorker(ctx context.Context, d *daemons, name string, g graph) error {
	st, err := s.dial()
	if err != nil {
		return err
	}
	d.stores = append(d.stores, st)
	o := worker.DefaultOptions()
	o.Name, o.Node, o.Store, o.Log, o.Slots = name, name, st, zerolog.Nop(), s.o.slots
	o.Handlers, o.DrainTimeout, o.DiskReserve = map[string]worker.Handler{program: g.number}, 0, 0
	o.SpoolDir = filepath.Join(s.temp, name)
	w, err := worker.New(o)
	if err != nil {
		return err
	}
	d.run(ctx, w.Run)
	return nil
}

// run runs one daemon until the others are to end too.
func (d *daemons) run(ctx context.Context, daemon func(context.Context) error) {
	d.running.Go(func() {
		if err := daemon(ctx); err != nil {
			d.cancel(err)
		}
	})
}

// stop ends them all.
func (d *daemons) stop() error {
	d.cancel(nil)
	d.running.Wait()
	var errs []error
	for _, st := range d.stores {
		errs = append(errs, st.Close())
	}
	return errors.Join(errs...)
}

// pollEvery is how often a run looks whether it is over.
const pollEvery = 20 * time.Millisecond

// await waits until so many tasks are in a state, and none has ended badly.
func (s *site) await(ctx context.Context, state statemachine.State, n int) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		c, err := s.store.Census(ctx)
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
