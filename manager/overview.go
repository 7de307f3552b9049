package manager

import (
	"context"
	"slices"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Overview is the state of a namespace at about one moment, for people to watch.
type Overview struct {
	Namespace string
	// At is the time of Redis.
	At      time.Time
	Counts  Counts
	Queues  []task.Queue
	Workers []task.Worker
	// Programs are the programs of tasks that the workers hold, of some hundreds
	// at most.
	Programs map[int64]string
	// Failures are tasks that did not succeed and were not retried, the newest first.
	Failures []Failure
}

// Ended counts the tasks that came to each outcome since their queues exist, without
// those that were retried.
func (o *Overview) Ended() map[statemachine.State]int64 {
	ended := map[statemachine.State]int64{}
	for i := range o.Queues {
		for outcome, n := range o.Queues[i].Ended {
			ended[outcome] += n
		}
	}
	return ended
}

// Overview reads the counts, the queues, the workers, and the newest failures, at
// most that many. Its cost does not depend on the number of tasks.
func (m *Manager) Overview(ctx context.Context, failures int) (Overview, error) {
	o := Overview{Namespace: m.Namespace()}
	var err error
	if o.Counts, err = m.Count(ctx); err != nil {
		return o, err
	}
	if o.Queues, err = m.Queues(ctx); err != nil {
		return o, err
	}
	workers, now, err := m.store.Workers(ctx)
	if err != nil {
		return o, err
	}
	o.Workers, o.At = workers, task.Moment(now)
	if o.Programs, err = m.programs(ctx, o.Workers); err != nil {
		return o, err
	}
	o.Failures, err = m.failures(ctx, failures)
	return o, err
}

// mostPrograms bounds of how many tasks the programs are read.
const mostPrograms = 500

func (m *Manager) programs(ctx context.Context, workers []task.Worker) (map[int64]string, error) {
	var ids []int64
	for i := range workers {
		ids = append(ids, workers[i].Tasks[:min(len(workers[i].Tasks), mostPrograms-len(ids))]...)
	}
	found, err := m.store.Fields(ctx, ids, "program")
	if err != nil {
		return nil, err
	}
	programs := make(map[int64]string, len(ids))
	for i, fields := range found {
		programs[ids[i]] = fields["program"]
	}
	return programs, nil
}

// Failure is a task that ended without success.
type Failure struct {
	// Task is read as [Manager.Select] does.
	Task *task.Task
	// Round is the last round that a worker has begun: worker, node, class and the
	// beginning of the error, at most 1 KiB.
	Round task.Round
	// At is when the task ended; zero if that is not recorded.
	At time.Time
}

// archiveLook is how many of the newest archived tasks are looked at for those
// that failed.
const archiveLook = 200

// failures reads the newest ones: of each outcome the last, and those among the
// tasks archived last.
func (m *Manager) failures(ctx context.Context, most int) ([]Failure, error) {
	if most <= 0 {
		return nil, nil
	}
	var all []*task.Task
	var stamps []string
	for _, state := range append(statemachine.Outcomes(), statemachine.Archived) {
		limit := most
		switch state {
		case statemachine.Succeeded:
			continue
		case statemachine.Archived:
			limit = max(most, archiveLook)
		default:
			stamps = append(stamps, string(state))
		}
		ids, err := m.store.IDs(ctx, state, 0, int64(limit), true)
		if err != nil {
			return nil, err
		}
		some, err := m.summaries(ctx, state, ids, retriedByField)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	all = slices.DeleteFunc(all, func(t *task.Task) bool {
		return !t.End().IsOutcome() || t.End() == statemachine.Succeeded || t.RetriedBy != 0
	})
	ended, rounds := map[*task.Task]time.Time{}, map[*task.Task]task.Round{}
	err := m.eachRound(ctx, all, presentRound, stamps, func(t *task.Task, r task.Round) { ended[t] = r.Stamps[string(t.End())] })
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b *task.Task) int { return ended[b].Compare(ended[a]) })
	all = all[:min(len(all), most)]
	err = m.eachRound(ctx, all, lastBegun, []string{"worker", "node", "class", "error"}, func(t *task.Task, r task.Round) {
		r.Error = headOf(r.Error)
		rounds[t] = r
	})
	failures := make([]Failure, len(all))
	for i, t := range all {
		failures[i] = Failure{Task: t, Round: rounds[t], At: ended[t]}
	}
	return failures, err
}
