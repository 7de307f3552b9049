package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/bench/redisd"
)

// window is how many tasks are between claim and archive at a time, as in a pool of that many slots.
const window = 400

const (
	leaseSeconds = 30
	workerName   = "worker-1"
	claimID      = "6f1c2a9be07d4c35"
)

// life drives tasks of one shape through one layout.
type life struct {
	srv    *redisd.Server
	layout layout
	shape  shape
	batch  int
	run    *scripts

	ready  []string
	place  []int
	output string
}

// ticket is what a worker knows of a task it has claimed.
type ticket struct{ id, round string }

func newLife(srv *redisd.Server, c benchCase) (*life, error) {
	run, err := newScripts(c.layout)
	if err != nil {
		return nil, err
	}
	l := &life{srv: srv, layout: c.layout, shape: c.shape, batch: c.batch, run: run}
	l.ready, l.place = readyKeys()
	l.output = strings.Repeat("x", c.shape.outputBytes-1) + "\n"
	return l, nil
}

// load puts every script into the server, so that its memory and compilation are not counted.
func (l *life) load(ctx context.Context) error {
	for _, s := range []*redis.Script{l.run.open, l.run.claim, l.run.renew, l.run.report, l.run.settle, l.run.archive} {
		if err := s.Load(ctx, l.srv.DB).Err(); err != nil {
			return fmt.Errorf("loading a script of layout %s: %w", l.layout.name, err)
		}
	}
	return nil
}

// open opens n tasks, in batches.
func (l *life) open(ctx context.Context, n int) error {
	keys := append([]string{keyTaskPrefix(), keyTaskID(), keyState("open")}, keysDue()...)
	first := len(keys) + 1
	keys = append(keys, l.ready...)
	for done := 0; done < n; done += l.batch {
		args := []any{namespace}
		for i := done; i < min(done+l.batch, n); i++ {
			args = append(args, l.newTask(i, first)...)
		}
		if err := l.run.open.EvalSha(ctx, l.srv.DB, keys, args...).Err(); err != nil {
			return fmt.Errorf("open: %w", err)
		}
	}
	return nil
}

// newTask returns the values of the i-th task as open.lua wants them; first is where the buckets start in KEYS.
func (l *life) newTask(i, first int) []any {
	endBefore, timeout := "inf", "inf"
	if l.shape.deadlines {
		endBefore, timeout = "4102444800", "3600"
	}
	b := i % len(l.place)
	bucket, priority := buckets()[b], ""
	if bucket.priority != 0 {
		priority = strconv.Itoa(bucket.priority)
	}
	return []any{
		"sum", l.shape.source, fmt.Sprintf("%d %d", i, i+1), "0", endBefore, timeout, "3", "3",
		bucket.queue, bucket.env, bucket.labels, priority, first + l.place[b],
	}
}

// claim takes n tasks, in batches, and returns them in the order they came.
func (l *life) claim(ctx context.Context, n int) ([]ticket, error) {
	keys := append([]string{keyTaskPrefix(), keyState("open"), keyState("running")}, keysDue()...)
	keys = append(keys, l.ready...)
	var got []ticket
	for len(got) < n {
		want := min(l.batch, n-len(got))
		found, err := l.run.claim.EvalSha(ctx, l.srv.DB, keys, want, workerName, claimID, leaseSeconds).Slice()
		if err != nil {
			return nil, fmt.Errorf("claim: %w", err)
		}
		if len(found) != want {
			return nil, fmt.Errorf("claim: %d tasks instead of %d", len(found), want)
		}
		for _, f := range found {
			task := f.([]any)
			got = append(got, ticket{task[0].(string), task[1].(string)})
		}
	}
	return got, nil
}

// renew sends one heartbeat for each task.
func (l *life) renew(ctx context.Context, tasks []ticket) error {
	keys := append([]string{keyTaskPrefix()}, keysDue()...)
	return l.each(ctx, "renew", l.run.renew, keys, []any{leaseSeconds}, tasks, func(t ticket) []any {
		return []any{t.id, t.round, claimID}
	})
}

// report delivers the results.
func (l *life) report(ctx context.Context, tasks []ticket) error {
	keys := append([]string{keyTaskPrefix(), keyState("running"), keyState("executed")}, keysDue()...)
	return l.each(ctx, "report", l.run.report, keys, []any{workerName}, tasks, func(t ticket) []any {
		return []any{t.id, t.round, claimID, l.output, "", "0"}
	})
}

// each runs a script over the tasks in batches and fails unless every task was accepted.
func (l *life) each(ctx context.Context, step string, script *redis.Script, keys []string, head []any,
	tasks []ticket, values func(ticket) []any) error {
	for len(tasks) > 0 {
		n := min(l.batch, len(tasks))
		args := append([]any{}, head...)
		for _, t := range tasks[:n] {
			args = append(args, values(t)...)
		}
		codes, err := script.EvalSha(ctx, l.srv.DB, keys, args...).Int64Slice()
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		for i, code := range codes {
			if code != 1 {
				return fmt.Errorf("%s: task %s was refused", step, tasks[i].id)
			}
		}
		tasks = tasks[n:]
	}
	return nil
}
