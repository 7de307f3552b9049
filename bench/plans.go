package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// What is wanted of plans.
const (
	mostRatio     = 2 // the time a task of a plan takes, in that of one that needs nothing
	longestScript = 5 * time.Millisecond
)

// Two kinds of tasks are compared; and a server releases half a plan at once.
const (
	flatName   = "tasks that need nothing"
	planName   = "tasks of the plan"
	notifyName = "notify"
)

// planCost is what was measured beside the rounds.
type planCost struct {
	*bench
	lives [2]*planLife
	// edges and freed are the needs and the tasks of the release.
	edges, freed int
	release      time.Duration
	// slow are the slow calls of scripts, by what ran.
	slow map[string]map[string]slowScript
	// shared says that other processes could preempt Redis while it ran scripts.
	shared bool
}

// plans builds a plan of layers, in which each task needs some of the layer before, and as many tasks that need nothing, and
// runs a slice of each a round. Then it measures the release alone.
func (b *bench) plans(ctx context.Context) ([]Table, error) {
	p := &planCost{bench: b, slow: map[string]map[string]slowScript{}}
	tables, err := p.run(ctx)
	if tables == nil {
		return nil, err
	}
	if failed := p.measureRelease(ctx); failed != nil {
		return nil, failed
	}
	tables[0].Text = p.text()
	if b.strict {
		err = errors.Join(err, p.tooSlow())
	}
	return tables, err
}

// run returns tables also with the error of a target that was not reached.
func (p *planCost) run(ctx context.Context) (_ []Table, err error) {
	g := p.plan()
	p.lives = [2]*planLife{{name: flatName, graph: g.flat()}, {name: planName, graph: g}}
	var all []*contender
	for _, l := range p.lives {
		if l.site, err = newPlanSite(ctx, p.bench); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, l.site.close()) }()
		p.slow[l.name], p.shared = l.site.slow.found, !l.site.preferred
		if err := l.fill(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		p.say("%s: built %d in %.1f s", l.name, l.tasks, l.build.Seconds())
		all = append(all, &contender{name: l.name, run: l.slice})
	}
	tables, err := p.compare(ctx, all, comparison{
		Table: Table{
			Name: "plans",
			Title: fmt.Sprintf("Plans: %d tasks in layers of %d, %d needs each; %d servers, workers x slots %dx%d",
				p.Tasks, p.layer, p.needs, p.servers, p.Workers, p.Slots),
			Metrics: []Metric{micros, cpuMicros, redisCPU}, Reference: flatName,
		},
		ratios:  []Metric{cpuMicros},
		targets: []target{{planName, flatName, micros, mostRatio, mostRatio}},
	})
	for _, l := range p.lives {
		if tables == nil {
			return nil, err
		}
		if failed := l.check(ctx); failed != nil {
			return nil, fmt.Errorf("%s: %w", l.name, failed)
		}
	}
	return tables, err
}

// measureRelease lets a server release the second half of a plan whose first half ended before any server ran.
func (p *planCost) measureRelease(ctx context.Context) error {
	g := p.plan().halves()
	s, err := newPlanSite(ctx, p.bench)
	if err != nil {
		return err
	}
	p.release, err = s.release(ctx, g)
	if err = errors.Join(err, s.close()); err != nil {
		return fmt.Errorf("%s: %w", notifyName, err)
	}
	p.slow[notifyName], p.edges, p.freed = s.slow.found, g.edges(), g.tasks-g.layer
	p.say("%s: %d tasks, %d needs in %.1f s", notifyName, p.freed, p.edges, p.release.Seconds())
	return nil
}

// release ends the first half by cancelling it, since without a server nothing else ends.
func (s *planSite) release(ctx context.Context, g graph) (time.Duration, error) {
	p, err := plan.New(ctx, s.m, "bench", plan.OnFailure(task.FailureContinues))
	if err != nil {
		return 0, err
	}
	g.add(p)
	if err := p.Send(ctx); err != nil {
		return 0, err
	}
	var ids []int64
	for id, err := range s.m.PlanTasks(ctx, p.ID()) {
		if err != nil {
			return 0, err
		}
		if ids = append(ids, id); len(ids) == g.layer {
			break
		}
	}
	if _, err := s.m.Cancel(ctx, ids, manager.ChangeOptions{Reason: "to release what needs it"}); err != nil {
		return 0, err
	}
	if err := p.Ready(ctx); err != nil {
		return 0, err
	}
	return s.until(ctx, 0, g, statemachine.Open, g.tasks-g.layer)
}

// planLife is one kind of tasks, on a Redis of its own, from their making to their end.
type planLife struct {
	name string
	graph
	site  *planSite
	plan  *plan.Plan // nil if the tasks need nothing
	build time.Duration
	// took is the time of all slices, done how many there were.
	took time.Duration
	done int
	// empty, waiting and ended are the bytes that Redis has allocated without tasks, before and after they ran.
	empty, waiting, ended float64
}

// fill opens all tasks, those that need one another in a plan that is then ready.
func (l *planLife) fill(ctx context.Context) (err error) {
	if l.empty, err = l.site.memory(ctx); err != nil {
		return err
	}
	began := time.Now()
	if l.needs == 0 {
		_, err = l.site.m.SubmitAll(ctx, numbered(task.Spec{Program: number}, l.tasks))
	} else if l.plan, err = plan.New(ctx, l.site.m, "bench"); err == nil {
		l.add(l.plan)
		err = l.plan.Ready(ctx)
	}
	if err != nil {
		return err
	}
	l.build = time.Since(began)
	l.waiting, err = l.site.memory(ctx)
	return err
}

// slice lets servers and workers do the next part of the tasks; their start is in the time.
func (l *planLife) slice(ctx context.Context) (reading, error) {
	before, err := l.site.Redis.Usage(ctx)
	if err != nil {
		return nil, err
	}
	b, first := l.site.b, l.tasks*l.done/l.site.b.Rounds
	l.done++
	last := l.tasks * l.done / b.Rounds
	took, err := l.site.until(ctx, b.Workers, l.graph, statemachine.Succeeded, last)
	if err != nil {
		return nil, err
	}
	l.took += took
	after, err := l.site.Redis.Usage(ctx)
	used, each := after.Since(before), 1e6/float64(last-first)
	return reading{micros.Name: took.Seconds() * each, cpuMicros.Name: (used.Own + used.Redis) * each, redisCPU.Name: used.Redis * each}, err
}

// check looks at what became of the tasks. Each was checked by its handler.
func (l *planLife) check(ctx context.Context) (err error) {
	if l.ended, err = l.site.memory(ctx); err != nil || l.plan == nil {
		return err
	}
	status, err := l.plan.Status(ctx)
	if err != nil {
		return err
	}
	if n := status.Ended[statemachine.Succeeded]; status.State != task.PlanCompleted || n != int64(l.tasks) {
		return fmt.Errorf("the plan is %s, and %d of its %d tasks have succeeded", status.State, n, l.tasks)
	}
	return nil
}

// text is what was measured beside the rounds.
func (p *planCost) text() string {
	var w strings.Builder
	rows := make([][]string, 0, len(p.lives))
	for _, l := range p.lives {
		each := float64(l.tasks)
		rows = append(rows, cells(l.name, 0,
			perSecond(l.tasks, l.build), perSecond(l.tasks, l.took), (l.waiting-l.empty)/each, (l.ended-l.empty)/each))
	}
	grid(&w, []string{"", "built a second", "run a second", "bytes a task, waiting", "ended"}, rows...)
	built := p.lives[1]
	fmt.Fprintf(&w, "\nNeeds: %.0f a second built, %.0f a second told while all of it runs; "+
		"by servers alone: %.0f a second, %.0f tasks a second released.\n\n",
		perSecond(built.edges(), built.build), perSecond(built.edges(), built.took), perSecond(p.edges, p.release), perSecond(p.freed, p.release))
	p.slowTable(&w)
	if p.shared {
		fmt.Fprint(&w, "\nRedis shared its processor with other processes, and these times include theirs: only root can give it priority.\n")
	}
	return w.String()
}

// slowTable shows for each script the longest call, and in brackets how many took longer than they may.
func (p *planCost) slowTable(w *strings.Builder) {
	ran := []string{flatName, planName, notifyName}
	longest := map[string]time.Duration{}
	for _, what := range ran {
		for name, script := range p.slow[what] {
			longest[name] = max(longest[name], script.longest)
		}
	}
	var rows [][]string
	for _, name := range slices.SortedFunc(maps.Keys(longest), func(a, b string) int { return cmp.Compare(longest[b], longest[a]) }) {
		row := []string{name}
		for _, what := range ran {
			row = append(row, p.slow[what][name].String())
		}
		rows = append(rows, row)
	}
	grid(w, append([]string{"longest call of a script, ms"}, ran...), rows...)
}

// tooSlow is an error if a script of the plan took too long. So does one that the machine stopped meanwhile.
func (p *planCost) tooSlow() error {
	calls := 0
	for _, what := range []string{planName, notifyName} {
		for _, script := range p.slow[what] {
			calls += script.above
		}
	}
	if calls > 0 {
		return fmt.Errorf("%w: %d calls of scripts took more than %s: redis-cli --intrinsic-latency says what the machine has to do with it",
			errMissed, calls, longestScript)
	}
	return nil
}

// perSecond is how many things a second.
func perSecond(things int, took time.Duration) float64 { return float64(things) / took.Seconds() }
