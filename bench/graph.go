package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// planSite is a namespace on a Redis of its own, with a manager.
type planSite struct {
	*site.Site
	b    *bench
	m    *manager.Manager
	slow *slowlog
	// preferred says that others take no time from Redis.
	preferred bool
}

func newPlanSite(ctx context.Context, b *bench) (*planSite, error) {
	on, err := site.New(ctx, "--slowlog-log-slower-than", slowFrom, "--slowlog-max-len", strconv.Itoa(slowKept))
	if err != nil {
		return nil, err
	}
	m, err := on.Manager(ctx, "bench")
	if err != nil {
		return nil, errors.Join(err, on.Close())
	}
	slow := &slowlog{db: on.Redis.DB, names: on.Store.ScriptNames(), found: map[string]slowScript{}}
	return &planSite{Site: on, b: b, m: m, slow: slow, preferred: on.Redis.Prefer()}, nil
}

func (s *planSite) close() error { return s.Close() }

// memory is what Redis has allocated, without its notes of slow calls.
func (s *planSite) memory(ctx context.Context) (float64, error) {
	if err := s.slow.take(ctx); err != nil {
		return 0, err
	}
	used, err := s.Redis.Usage(ctx)
	return used.Memory, err
}

// until lets servers, and that many workers with the handler of a graph, work until n tasks are in a state, and returns how long it took.
func (s *planSite) until(ctx context.Context, workers int, g graph, state statemachine.State, n int) (took time.Duration, err error) {
	began := time.Now()
	err = s.Run(ctx, func(ctx context.Context, c *site.Crew) error {
		hand := site.Hand{Slots: s.b.Slots, Handlers: map[string]worker.Handler{number: g.number}}
		if err := errors.Join(c.Servers(s.b.servers), c.Workers(workers, hand)); err != nil {
			return err
		}
		err := s.await(ctx, state, n)
		took = time.Since(began)
		return err
	})
	return took, err
}

// await waits until n tasks are in a state. It is an error if one fails.
func (s *planSite) await(ctx context.Context, state statemachine.State, n int) error {
	return site.Await(ctx, pollEvery, func() (bool, error) {
		c, err := s.Store.Census(ctx)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err == nil {
			err = s.slow.take(ctx)
		}
		if bad := c.Listed[statemachine.Failed]; err == nil && bad > 0 {
			err = fmt.Errorf("%d tasks failed", bad)
		}
		return c.Listed[state] >= int64(n), err
	})
}

// pollEvery is how often a run looks whether it is over.
const pollEvery = 20 * time.Millisecond

// graph is a plan of layers. Tasks are numbered from 0; each one brings its number.
type graph struct{ tasks, layer, needs int }

func (b *bench) plan() graph { return graph{b.Tasks, b.layer, b.needs} }

// of are the numbers of the tasks that a task needs: spread over the layer before, so that each one there is needed
// as often as any other.
func (g graph) of(n int) []int {
	first := n/g.layer*g.layer - g.layer
	if first < 0 {
		return nil
	}
	numbers := make([]int, g.needs)
	for i := range numbers {
		numbers[i] = first + (n+i*g.layer/g.needs)%g.layer
	}
	return numbers
}

// edges is how many needs the plan has.
func (g graph) edges() int { return max(0, g.tasks-g.layer) * g.needs }

// add fills a plan.
func (g graph) add(p *plan.Plan) {
	all := make([]*plan.Task, g.tasks)
	for n := range all {
		var deps []plan.Dep
		for _, need := range g.of(n) {
			deps = append(deps, all[need])
		}
		all[n] = p.Add(task.Spec{Program: number, Input: strconv.Itoa(n)}, deps...)
	}
}

const number = "number"

// flat is as many tasks of which none needs another.
func (g graph) flat() graph { return graph{tasks: g.tasks, layer: g.tasks} }

// halves is a plan of two layers, of which the second can be released at once.
func (g graph) halves() graph {
	half := max(g.needs, g.tasks/2)
	return graph{tasks: 2 * half, layer: half, needs: g.needs}
}

// number is the handler of all tasks: it brings the number of the task, and refuses other arguments than those that
// the task should have.
func (g graph) number(_ context.Context, j *worker.Job) error {
	n, err := strconv.Atoi(j.Task.Input)
	if err != nil {
		return fmt.Errorf("input %q: %w", j.Task.Input, err)
	}
	var want []string
	for _, need := range g.of(n) {
		want = append(want, strconv.Itoa(need))
	}
	if got := j.Args[1:]; !slices.Equal(got, want) {
		return fmt.Errorf("task %d got %v, want %v", n, got, want)
	}
	_, err = fmt.Fprintln(j.Stdout(), n)
	return err
}

// Redis notes commands that take slowFrom, in microseconds, or longer, and keeps the last slowKept: more than come between
// two looks.
const (
	slowFrom = "500"
	slowKept = 100_000
)

// slowlog gathers the slow calls of scripts from Redis, which counts the time of execution alone. That is time on the
// clock: where the system gives the processor to somebody else meanwhile, it counts.
type slowlog struct {
	db    *redis.Client
	names map[string]string // of scripts by their hashes
	found map[string]slowScript
}

// slowScript is what a script took.
type slowScript struct {
	longest time.Duration
	above   int // calls that took longer than longestScript
}

// take reads what has come since the last time, so that it neither overflows nor counts as memory.
func (s *slowlog) take(ctx context.Context) error {
	var noted *redis.SlowLogCmd
	_, err := s.db.TxPipelined(ctx, func(p redis.Pipeliner) error { // what comes in between would be lost
		noted = p.SlowLogGet(ctx, slowKept)
		p.Do(ctx, "slowlog", "reset")
		return nil
	})
	if err != nil {
		return fmt.Errorf("SLOWLOG GET and RESET: %w", err)
	}
	for _, call := range noted.Val() {
		if len(call.Args) < 2 || !strings.EqualFold(call.Args[0], "evalsha") {
			continue // what loads scripts
		}
		name := s.names[call.Args[1]]
		script := s.found[name]
		script.longest = max(script.longest, call.Duration)
		if call.Duration > longestScript {
			script.above++
		}
		s.found[name] = script
	}
	return nil
}

// String is a cell of the table.
func (s slowScript) String() string {
	switch {
	case s.longest == 0:
		return "-"
	case s.above == 0:
		return fmt.Sprintf("%.1f", s.longest.Seconds()*1000)
	}
	return fmt.Sprintf("%.1f (%d)", s.longest.Seconds()*1000, s.above)
}
