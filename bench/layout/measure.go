package main

import (
	"context"
	"fmt"

	"github.com/tdf-go/tdf/bench/redisd"
)

// sampleTask returns the id of a task of the first window with three digits, if there are that many: log lines of
// shorter ids are shorter, too.
func sampleTask(n int) string {
	if n < 101 {
		return "1"
	}
	return "101"
}

// steps are the columns of CPU time. renew is not part of every life and stays out of the total.
var steps = []string{"open", "claim", "report", "settle", "archive", "renew"}

// result holds what one run of one case measured.
type result struct {
	cpu      map[string]float64 // microseconds of Redis CPU a task, by step
	waiting  float64            // bytes a task when all are open
	archived float64            // bytes a task when all are archived
	hash     map[string]float64 // bytes of one task's hash after a step
	encoding map[string]string  // of that hash after a step
}

// total returns the microseconds of a whole life without heartbeats.
func (r result) total() float64 {
	sum := 0.0
	for _, step := range steps[:len(steps)-1] {
		sum += r.cpu[step]
	}
	return sum
}

// probe measures around the steps of one life.
type probe struct {
	*life
	res result
}

// measure runs n tasks through a whole life on a server of its own.
func measure(ctx context.Context, c benchCase, n int) (result, error) {
	srv, err := redisd.Start(ctx, c.limits.args...)
	if err != nil {
		return result{}, err
	}
	defer srv.Stop()
	l, err := newLife(srv, c)
	if err != nil {
		return result{}, err
	}
	p := &probe{l, result{cpu: map[string]float64{}, hash: map[string]float64{}, encoding: map[string]string{}}}
	if err := p.whole(ctx, n); err != nil {
		return result{}, fmt.Errorf("%s: %w", c, err)
	}
	return p.res, nil
}

// whole opens all tasks, then takes them from claim to archive a window at a time.
func (p *probe) whole(ctx context.Context, n int) error {
	if err := p.load(ctx); err != nil {
		return err
	}
	before, err := p.srv.Memory(ctx)
	if err != nil {
		return err
	}
	if err := p.step(ctx, "open", n, func() error { return p.open(ctx, n) }); err != nil {
		return err
	}
	after, err := p.srv.Memory(ctx)
	if err != nil {
		return err
	}
	p.res.waiting = (after - before) / float64(n)
	for done := 0; done < n; done += window {
		if err := p.window(ctx, n, min(window, n-done)); err != nil {
			return err
		}
	}
	after, err = p.srv.Memory(ctx)
	p.res.archived = (after - before) / float64(n)
	return err
}

// window takes the next k of n tasks to their end.
func (p *probe) window(ctx context.Context, n, k int) error {
	var tasks []ticket
	claim := func() (err error) {
		tasks, err = p.claim(ctx, k)
		return err
	}
	if err := p.step(ctx, "claim", n, claim); err != nil {
		return err
	}
	for _, s := range []struct {
		name string
		do   func(context.Context, []ticket) error
	}{{"renew", p.renew}, {"report", p.report}, {"settle", p.settle}, {"archive", p.archive}} {
		if err := p.step(ctx, s.name, n, func() error { return s.do(ctx, tasks) }); err != nil {
			return err
		}
	}
	return nil
}

// step adds the CPU time of do, shared among n tasks, and looks at the sample task the first time.
func (p *probe) step(ctx context.Context, name string, n int, do func() error) error {
	before, err := p.srv.CPU(ctx)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after, err := p.srv.CPU(ctx)
	if err != nil {
		return err
	}
	p.res.cpu[name] += (after - before) * 1e6 / float64(n)
	if _, seen := p.res.hash[name]; seen {
		return nil
	}
	sample := sampleTask(n)
	bytes, err := p.srv.DB.MemoryUsage(ctx, keyTask(sample), 0).Result()
	if err != nil {
		return fmt.Errorf("MEMORY USAGE after %s: %w", name, err)
	}
	p.res.hash[name] = float64(bytes)
	p.res.encoding[name], err = p.srv.DB.ObjectEncoding(ctx, keyTask(sample)).Result()
	return err
}
