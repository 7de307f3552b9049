package answer

import (
	"context"
	"maps"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Waited is what a wait has come to.
type Waited struct {
	Total        int                        `json:"total"`
	Done         int                        `json:"done"`
	States       map[statemachine.State]int `json:"states"`
	Damaged      int                        `json:"damaged"`
	NotReady     []task.PlanID              `json:"plans_not_ready"`
	Unsuccessful int                        `json:"unsuccessful"`
	First        []Failure                  `json:"first_unsuccessful"`
	Cut          []int64                    `json:"cut"`
	TimedOut     bool                       `json:"timed_out"`
}

// Failure is a task that did not succeed.
type Failure struct {
	ID    int64              `json:"id"`
	State statemachine.State `json:"state"`
	// Error is the end of what its last round wrote to stderr.
	Error string `json:"error"`
	// OnStderr says that nothing else was wrong with the round.
	OnStderr bool `json:"on_stderr,omitempty"`
}

// mostFailures is how many are told of.
const mostFailures = 5

// Failures are the first of some tasks that did not succeed.
func Failures(ctx context.Context, m *manager.Manager, ids []int64) ([]Failure, error) {
	failures, shown := []Failure{}, ids[:min(len(ids), mostFailures)]
	tasks, err := m.Tasks(ctx, shown)
	if err != nil {
		return nil, err
	}
	for i, id := range shown {
		f := Failure{ID: id, State: "damaged"}
		if t := tasks[i]; t != nil && t.Err == nil {
			f.State, f.Error = t.EndState(), clean.Tail(t.Failure())
			f.OnStderr = t.OnStderr()
		}
		failures = append(failures, f)
	}
	return failures, nil
}

// Wait waits as long as limit says until the tasks that f means have ended, all if it has no conditions. What it has come to by then it
// says also if ctx ends before.
func Wait(ctx context.Context, m *manager.Manager, f *bulk.Filter, limit time.Duration) (*Waited, error) {
	sel, err := f.Selection(bulk.Newest(ctx, m))
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if f.OnlyJob() {
		p, err := m.WaitPlan(within, sel.Plan, nil)
		late := err != nil && within.Err() != nil
		if err != nil && !late {
			return nil, err
		}
		return WaitedForJob(ctx, m, sel.Plan, p, late)
	}
	ids, err := WaitIDs(ctx, m, f, sel)
	if err != nil {
		return nil, err
	}
	var p manager.Progress
	if ids == nil {
		p, err = m.WaitAll(within, nil)
	} else {
		p, err = m.Wait(within, ids, nil)
	}
	late := err != nil && within.Err() != nil
	if err != nil && !late {
		return nil, err
	}
	return WaitedFor(ctx, m, p, late)
}

// WaitIDs are the tasks that a selection of f means to wait for; nil means all.
func WaitIDs(ctx context.Context, m *manager.Manager, f *bulk.Filter, sel manager.Selection) ([]int64, error) {
	if sel.IDs == nil && !f.Narrow() {
		return nil, nil
	}
	ids := []int64{}
	if !f.Narrow() {
		for _, r := range sel.IDs {
			for id := r.First; id <= r.Last; id++ {
				ids = append(ids, id)
			}
		}
		return ids, nil
	}
	sel.Archived = true
	for t, err := range m.Select(ctx, sel) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, t.ID)
	}
	return ids, nil
}

// WaitedFor is what a wait for tasks has come to, which has got that far. An end of ctx has nothing left to end.
func WaitedFor(ctx context.Context, m *manager.Manager, p manager.Progress, timedOut bool) (*Waited, error) {
	failures, err := Failures(context.WithoutCancel(ctx), m, p.Unsuccessful)
	return waited(p, failures, len(p.Unsuccessful), timedOut), err
}

func waited(p manager.Progress, failures []Failure, unsuccessful int, timedOut bool) *Waited {
	return &Waited{
		Total: p.Total, Done: p.Done, States: p.States, Damaged: p.Damaged, NotReady: clean.List(p.NotReady),
		Unsuccessful: unsuccessful, First: failures, Cut: clean.List(p.Cut), TimedOut: timedOut,
	}
}

// WaitedForJob is what a wait for a job has come to. p is how the job was last; nil if that is not known.
// As in [WaitedFor].
func WaitedForJob(ctx context.Context, m *manager.Manager, id task.PlanID, p *task.Plan, timedOut bool) (*Waited, error) {
	ctx = context.WithoutCancel(ctx)
	var err error
	if p == nil {
		if p, err = m.Plan(ctx, id); err != nil {
			return nil, err
		}
	}
	running := map[task.PlanID]int64{}
	if p.Left > 0 {
		if running, err = m.Underway(ctx); err != nil {
			return nil, err
		}
	}
	reached := JobProgress(p, running[id])
	failed, err := jobFailures(ctx, m, p)
	if err == nil {
		reached.Cut, err = jobCut(ctx, m, p)
	}
	if err != nil {
		return nil, err
	}
	failures, err := Failures(ctx, m, failed)
	return waited(reached, failures, int((&Job{Plan: *p}).Unsuccessful()), timedOut), err
}

// JobProgress counts the tasks of a job by state, given how many of them run. Those that its window has room for count as open.
func JobProgress(p *task.Plan, running int64) manager.Progress {
	progress := manager.Progress{Total: int(p.Total), Done: int(p.Total - p.Left), States: map[statemachine.State]int{}}
	running = min(running, p.Left)
	blocked := int64(0)
	if waiting := p.Left - running; !plans.Runs(p) {
		blocked = waiting
	} else if p.Window > 0 {
		blocked = max(0, p.Left-int64(p.Window))
	}
	counts := maps.Clone(p.Ended)
	counts[statemachine.Running], counts[statemachine.Blocked], counts[statemachine.Open] = running, blocked, p.Left-running-blocked
	for state, n := range counts {
		if n > 0 {
			progress.States[state] = int(n)
		}
	}
	return progress
}

// jobCut are the tasks of a job that lost a part of their output or files. Where none did, the job knows, and none is read.
func jobCut(ctx context.Context, m *manager.Manager, p *task.Plan) (ids []int64, err error) {
	if !p.Cut {
		return nil, nil
	}
	sel := manager.Selection{Plan: p.ID, All: true, Archived: true, NotRetried: true, Fields: []string{"cut"}}
	for t, err := range m.Select(ctx, sel) {
		if err != nil {
			return ids, err
		}
		if t.Cut != nil {
			ids = append(ids, t.ID)
		}
	}
	return ids, nil
}

// jobFailures are the first tasks of a job that have not succeeded.
func jobFailures(ctx context.Context, m *manager.Manager, p *task.Plan) (ids []int64, err error) {
	if bad := (&Job{Plan: *p}).Unsuccessful(); bad > 0 && int64(len(p.Failures)) == min(bad, mostFailures) {
		return p.Failures, nil
	}
	sel := manager.Selection{Plan: p.ID, All: true, NotRetried: true}
	for _, state := range statemachine.Outcomes() {
		if state != statemachine.Succeeded && p.Ended[state] > 0 {
			sel.States = append(sel.States, state)
		}
	}
	if len(sel.States) == 0 {
		return nil, nil
	}
	for t, err := range m.Select(ctx, sel) {
		if err != nil || len(ids) == mostFailures {
			return ids, err
		}
		ids = append(ids, t.ID)
	}
	return ids, nil
}
