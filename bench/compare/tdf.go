package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/contend"
	"github.com/tdf-go/tdf/bench/crew"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/worker"
)

// program is the name of the handler.
const program = "noop"

// site is TDF on a Redis of its own, for one run.
type site struct {
	*crew.Site
	m *manager.Manager
}

func (b *bench) atSite(ctx context.Context, do func(s site) error) (err error) {
	on, err := crew.NewSite(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	var settings []string
	for _, setting := range b.o.Settings {
		if strings.HasPrefix(setting, "manager.") {
			settings = append(settings, setting)
		}
	}
	m, err := on.Manager(ctx, "bench", settings...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return do(site{on, m})
}

func (b *bench) fleet(h worker.Handler) crew.Fleet {
	return crew.Fleet{
		Servers: 1, Workers: b.o.Workers, Slots: b.o.WorkerSlots, Handlers: map[string]worker.Handler{program: h},
	}
}

// tdfLife opens all tasks, then processes and archives them: the start of server and worker is in the time, as with peers.
func (b *bench) tdfLife(ctx context.Context) (r reading, err error) {
	n := b.o.Handlers
	err = b.atSite(ctx, func(s site) error {
		if _, _, err := b.life(ctx, s, warm(n)); err != nil {
			return err
		}
		opening, processing, err := b.life(ctx, s, n)
		if err != nil {
			return err
		}
		redis, err := s.Redis.CPU(ctx)
		r = lifeReading(n, opening.Seconds(), processing.Seconds(), redis)
		return err
	})
	return r, err
}

func (b *bench) life(ctx context.Context, s site, n int) (opening, processing time.Duration, err error) {
	began := time.Now()
	if _, err := s.m.OpenAll(ctx, specs(n)); err != nil {
		return 0, 0, err
	}
	opened := time.Now()
	life, daemons, err := s.Start(ctx, b.fleet(func(context.Context, *worker.Job) error { return nil }))
	if err != nil {
		return 0, 0, err
	}
	err = contend.Archive(life, s.m, n, succeeded)
	ended := time.Now()
	return opened.Sub(began), ended.Sub(opened), errors.Join(err, daemons.Stop())
}

func specs(n int) func(yield func(manager.Spec) bool) {
	return func(yield func(manager.Spec) bool) {
		for i := range n {
			if !yield(manager.Spec{Program: program, Input: strconv.Itoa(i)}) {
				return
			}
		}
	}
}

func succeeded(task *manager.Task) error {
	if task.EndState() != statemachine.Succeeded {
		return fmt.Errorf("task %d has %s: %s", task.ID, task.EndState(), task.Last().Error)
	}
	return nil
}

// tdfLatency opens tasks one by one at a steady rate while a fleet waits for them and a manager archives them.
func (b *bench) tdfLatency(ctx context.Context) (r reading, err error) {
	err = b.atSite(ctx, func(s site) error {
		start, all := time.Now(), warm(b.o.Latencies)+b.o.Latencies
		took := make(chan time.Duration, all)
		life, daemons, err := s.Start(ctx, b.fleet(func(_ context.Context, j *worker.Job) error {
			opened, err := strconv.ParseInt(j.Input, 10, 64)
			took <- time.Since(start) - time.Duration(opened)
			return err
		}))
		if err != nil {
			return err
		}
		archived := make(chan error, 1)
		go func() { archived <- contend.Archive(life, s.m, all, succeeded) }()
		err = b.openSteadily(life, s.m, start, all)
		if err == nil {
			err = <-archived
		}
		err = errors.Join(err, daemons.Stop())
		if err != nil {
			return err
		}
		close(took)
		r = percentiles(milliseconds(took)[all-b.o.Latencies:])
		return nil
	})
	return r, err
}

func milliseconds(took <-chan time.Duration) (ms []float64) {
	for d := range took {
		ms = append(ms, d.Seconds()*1000)
	}
	return ms
}

// openSteadily opens tasks that bring the time, from start, just before they were opened.
func (b *bench) openSteadily(ctx context.Context, m *manager.Manager, start time.Time, n int) error {
	steps := time.NewTicker(time.Second / time.Duration(b.o.Rate))
	defer steps.Stop()
	for range n {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-steps.C:
		}
		at := strconv.FormatInt(int64(time.Since(start)), 10)
		if _, err := m.Open(ctx, manager.Spec{Program: program, Input: at}); err != nil {
			return err
		}
	}
	return nil
}
