package answer

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Listed is what [List] has found; Tasks are the answer.
type Listed struct {
	Tasks []*task.Task
	// More are the states of which there are tasks beyond the limit.
	More []statemachine.State
	// Missing are ids of no task.
	Missing []int64
}

// List reads the tasks that a selection means, by state and the newest first, at most limit of each state (0: no limit). One
// that says nothing of IDs means all. A task that was retried is left out where states are named. places adds where tasks run.
func List(ctx context.Context, m *manager.Manager, sel manager.Selection, limit int, places bool) (*Listed, error) {
	sel.All = sel.IDs == nil
	sel.Archived, sel.Fields, sel.Newest, sel.NotRetried = true, task.HeadNames(), true, len(sel.States) > 0
	if limit > 0 && sel.All {
		sel.Limit = limit + 1 // to know whether there are more
	}
	found := &Listed{Tasks: []*task.Task{}}
	counts := map[statemachine.State]int{}
	for t, err := range m.Select(ctx, sel) {
		if err != nil {
			return found, err
		}
		counts[t.State]++
		switch {
		case t.State == statemachine.None:
			found.Missing = append(found.Missing, t.ID)
		case sel.Limit > 0 && counts[t.State] > limit:
			found.More = append(found.More, t.State)
		default:
			found.Tasks = append(found.Tasks, t)
		}
	}
	if sel.Plan != 0 { // which lists them as they were opened
		order := func(t *task.Task) int { return slices.Index(statemachine.States(), t.State) }
		slices.SortStableFunc(found.Tasks, func(a, b *task.Task) int { return cmp.Compare(order(a), order(b)) })
	}
	return found, m.PresentRounds(ctx, found.Tasks, places)
}

// Plans are at most that many of the newest plans, which are above 0, with jobs or without.
func Plans(ctx context.Context, m *manager.Manager, most int, jobs bool) ([]task.Plan, error) {
	found := []task.Plan{}
	for p, err := range m.Plans(ctx) {
		if err != nil {
			return found, err
		}
		if jobs || !p.Job {
			found = append(found, p)
		}
		if len(found) == most {
			break
		}
	}
	return found, nil
}

// Job is a plan as lists of jobs have it.
type Job struct {
	task.Plan

	// Running is how many of its tasks run, or have run and were not settled yet.
	Running int64 `json:"running"`
}

// Jobs are [Plans], jobs or not, as jobs.
func Jobs(ctx context.Context, m *manager.Manager, most int) ([]Job, error) {
	found, err := Plans(ctx, m, most, true)
	if err != nil {
		return nil, err
	}
	running, err := m.Underway(ctx)
	if err != nil {
		return nil, err
	}
	jobs := make([]Job, len(found))
	for i := range found {
		jobs[i] = Job{found[i], running[found[i].ID]}
	}
	return jobs, nil
}

// JobOf is a plan as a job, at a cost that does not grow with its tasks.
func JobOf(ctx context.Context, m *manager.Manager, p *task.Plan) (*Job, error) {
	running, err := m.Underway(ctx)
	return &Job{*p, running[p.ID]}, err
}

// Waiting is how many tasks have not begun. What runs was counted at another moment.
func (j *Job) Waiting() int64 { return max(0, j.Left-j.Running) }

// Unsuccessful is how many of the tasks have ended, and not in success.
func (j *Job) Unsuccessful() int64 {
	return j.Total - j.Left - j.Skipped - j.Ended[statemachine.Succeeded]
}

// Word is the state of the plan, in the words for a job: one whose tasks are still being opened already runs.
func (j *Job) Word() string {
	bad := j.Unsuccessful()
	switch {
	case j.Job && j.State == task.PlanBuilding:
		return "opening"
	case j.State == task.PlanReady:
		return "running"
	case j.State == task.PlanFailed && bad > 0 && bad == j.Ended[statemachine.Cancelled]+j.Ended[statemachine.Terminated]:
		return string(task.PlanCancelled) // by hand
	case j.State == task.PlanHeld && strings.HasPrefix(j.HeldBy, plans.HeldByJob):
		return "after " + strings.TrimPrefix(j.HeldBy, plans.HeldByJob)
	}
	return string(j.State)
}

// Workers are those that have not stopped, or all. hidden is how many are left out.
func Workers(ctx context.Context, m *manager.Manager, all bool) (shown []task.Worker, hidden int, err error) {
	found, err := m.Workers(ctx)
	shown = []task.Worker{}
	for _, w := range found {
		if all || w.State != task.WorkerStopped {
			shown = append(shown, w)
		}
	}
	return shown, len(found) - len(shown), err
}
