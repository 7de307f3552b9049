package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tdf-go/tdf/bench/redisd"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
)

// kind is what a run is for.
type kind int

const (
	flatKind kind = iota
	planKind
	releaseKind
	kinds
)

// String is a column of the table.
func (k kind) String() string { return [...]string{"unconnected", "plan", "release"}[k] }

// slice is a part of the tasks, run to the end.
type slice struct {
	took time.Duration
	// redisCPU and ownCPU are the processor time, of Redis and of this process.
	redisCPU, ownCPU time.Duration
}

// life is what one kind of task costs from its making to its end.
type life struct {
	build  time.Duration
	slices []slice
	// empty, waiting and ended are the bytes that Redis has allocated without tasks, before and after they ran.
	empty, waiting, ended float64
}

// figures are what was measured.
type figures struct {
	lives   [2]life // of flatKind and planKind
	release time.Duration
	slow    [kinds]map[string]slowScript
	// shared says that others took time from Redis while it carried out scripts.
	shared bool
	pauses redisd.Pauses // of the machine
	// scripts is how long those of the plan, and of its release, have run.
	scripts time.Duration
}

// measure builds both kinds of tasks, runs a slice of each in turn, because a machine that is busy for a while slows
// neighbours in time alike, and then measures the release alone.
func measure(ctx context.Context, o options, progress io.Writer) (*figures, error) {
	f := &figures{pauses: redisd.Pauses{Limit: longestScript}}
	f.pauses.Watch(ctx, o.pauses)
	err := f.measureLives(ctx, o, progress)
	if err == nil {
		err = f.measureRelease(ctx, o, progress)
	}
	f.pauses.Watch(ctx, o.pauses)
	return f, err
}

func (f *figures) measureLives(ctx context.Context, o options, progress io.Writer) (err error) {
	var all [2]*contender
	for k, g := range [...]graph{flatKind: o.flat(), planKind: o.graph} {
		s, err := newSite(ctx, o)
		if err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, s.close())
			f.slow[k] = s.slow.found
		}()
		c := &contender{kind(k), g, s, nil, &f.lives[k]}
		if err := c.fill(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.kind, err)
		}
		_, _ = fmt.Fprintf(progress, "%s: built %d tasks in %.1f s\n", c.kind, g.tasks, c.build.Seconds())
		all[k], f.shared = c, !s.preferred
	}
	for n := range o.slices {
		for _, c := range all {
			if err := c.run(ctx, n); err != nil {
				return fmt.Errorf("%s: %w", c.kind, err)
			}
			_, _ = fmt.Fprintf(progress, "slice %d of %d: %s: %.1f s\n", n+1, o.slices, c.kind, c.slices[n].took.Seconds())
		}
	}
	for _, c := range all {
		if err := c.check(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.kind, err)
		}
	}
	return f.addScripts(ctx, all[planKind].site)
}

// addScripts adds how long the scripts of a site have run.
func (f *figures) addScripts(ctx context.Context, s *site) error {
	took, err := s.Redis.ScriptTime(ctx)
	f.scripts += took
	return err
}

// measureRelease lets a server release the second half of a plan of which the first has ended while there was none.
func (f *figures) measureRelease(ctx context.Context, o options, progress io.Writer) error {
	g := o.halves()
	s, err := newSite(ctx, o)
	if err != nil {
		return err
	}
	f.release, err = s.release(ctx, g)
	if err = errors.Join(err, f.addScripts(ctx, s), s.close()); err != nil {
		return fmt.Errorf("%s: %w", releaseKind, err)
	}
	f.slow[releaseKind] = s.slow.found
	_, _ = fmt.Fprintf(progress, "%s: %d tasks, %d needs in %.1f s\n", releaseKind, g.tasks-g.layer, g.edges(), f.release.Seconds())
	return nil
}

// memory is what Redis has allocated, without its notes of slow calls.
func (s *site) memory(ctx context.Context) (float64, error) {
	if err := s.slow.take(ctx); err != nil {
		return 0, err
	}
	return s.Redis.Memory(ctx)
}

// release ends the first half by cancelling it, since without a server nothing else ends.
func (s *site) release(ctx context.Context, g graph) (took time.Duration, err error) {
	p, err := plan.New(ctx, s.m, "bench", plan.OnFailure(manager.FailureContinues))
	if err != nil {
		return 0, err
	}
	g.add(p)
	if err := p.Send(ctx); err != nil {
		return 0, err
	}
	ids, err := s.m.PlanTasks(ctx, p.ID(), 0, g.layer)
	if err != nil {
		return 0, err
	}
	if _, err := s.m.Cancel(ctx, ids, "to release what needs it"); err != nil {
		return 0, err
	}
	if err := p.Ready(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	life, d, err := s.start(ctx, 0, g)
	if err != nil {
		return 0, err
	}
	err = s.await(life, statemachine.Open, g.tasks-g.layer)
	took = time.Since(began)
	return took, errors.Join(err, d.Stop())
}
