package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// tidying is what a lap asks of the store.
type tidying interface {
	ShortenChanges(ctx context.Context, most int) error
	DismissWorkers(ctx context.Context, age time.Duration, cursor uint64) (gone int, next uint64, err error)
	Indices(ctx context.Context) ([]upkeep.Index, error)
	Members(ctx context.Context, x upkeep.Index, cursor uint64) (members []string, next uint64, err error)
	Strays(ctx context.Context, x upkeep.Index, members []string) ([]string, error)
	Unlist(ctx context.Context, x upkeep.Index, members []string) ([]string, error)

	mending
}

// mending is what it asks about plans.
type mending interface {
	FreedIDs(ctx context.Context, plan task.PlanID, offset, limit int) ([]int64, error)
	ListPlans(ctx context.Context, offset, limit int) ([]task.Plan, error)
	PlanTasks(ctx context.Context, id task.PlanID, offset, limit int) ([]int64, error)
	Planned(ctx context.Context, plan task.PlanID, ids []int64, of int64) ([]plans.Planned, error)
	Requeue(ctx context.Context, plan task.PlanID, task int64) error
	PlanSum(ctx context.Context, id task.PlanID) (*plans.PlanSum, error)
	Retally(ctx context.Context, is, want *plans.PlanSum) (bool, error)
}

// lapPause is how many repair intervals there are at least from the beginning of one lap to that of the next.
const lapPause = 12

// lap is a slow look at what the walk over the tasks does not meet: members of indices that stand for no task, or for one that is
// elsewhere, and the lists by which servers keep plans going. Damage done by hand brings them about, and a client that died
// between two steps.
type lap struct {
	began time.Time
	// indices are still to be looked at, the first one from cursor on.
	indices []upkeep.Index
	cursor  uint64
	// strays were found in the pass before. What is one still has stood for a repair interval.
	strays map[upkeep.Index][]string
	// plans is how many plans have been looked at, tasks how many of the next one; over says that none is left.
	plans, tasks int
	over         bool
	// job is what a job that is not over counted when the lap came to it, nil for none; sum is what its tasks say, of which seen were
	// looked at, and away were not there.
	job        *plans.PlanSum
	sum        plans.PlanSum
	seen, away int64
}

// tidy goes on with the lap.
func (k *janitor) tidy(ctx context.Context) error {
	l := &k.lap
	for x, members := range l.strays {
		gone, err := k.store.Unlist(ctx, x, members)
		if err != nil {
			return err
		}
		if len(gone) > 0 {
			k.stats.repaired(len(gone))
			k.log.Info("took out of an index what does not belong there", "index", x, "members", gone)
		}
		delete(l.strays, x)
	}
	if len(l.indices) == 0 && l.over && time.Since(l.began) >= lapPause*k.opt.RepairInterval {
		l.began = time.Time{}
	}
	if l.began.IsZero() {
		indices, err := k.store.Indices(ctx)
		if err != nil {
			return err
		}
		for _, state := range statemachine.States() {
			indices = append(indices, upkeep.Index{Kind: upkeep.IndexState, Of: string(state)})
		}
		*l = lap{began: time.Now(), indices: indices, strays: map[upkeep.Index][]string{}}
	}
	if err := k.lookForStrays(ctx, l); err != nil || len(l.indices) > 0 {
		return err
	}
	return k.lookAtPlans(ctx, l)
}

// lookForStrays looks at the next members of indices.
func (k *janitor) lookForStrays(ctx context.Context, l *lap) error {
	for looked := 0; looked < k.opt.RepairBatch && len(l.indices) > 0; looked++ {
		x := l.indices[0]
		members, next, err := k.store.Members(ctx, x, l.cursor)
		if err != nil {
			return err
		}
		if err := k.lookForUnknown(ctx, x, members); err != nil {
			return err
		}
		for part := range slices.Chunk(members, chunk) {
			strays, err := k.store.Strays(ctx, x, part)
			if err != nil {
				return err
			}
			if len(strays) > 0 {
				l.strays[x] = append(l.strays[x], strays...)
			}
		}
		looked += len(members)
		if l.cursor = next; next == 0 {
			l.indices = l.indices[1:]
		}
	}
	return nil
}

// lookForUnknown suspects ids in a state set that were never given out: the walk over all tasks does not come by.
func (k *janitor) lookForUnknown(ctx context.Context, x upkeep.Index, members []string) error {
	if x.Kind != upkeep.IndexState || len(members) == 0 {
		return nil
	}
	last, err := k.store.LastID(ctx)
	for _, m := range members {
		if id := x.IDOf(m); err == nil && id > last {
			k.suspects.add(id)
		}
	}
	return err
}

// lookAtPlans looks at the next tasks of plans, and at those on the lists of tasks to move.
func (k *janitor) lookAtPlans(ctx context.Context, l *lap) error {
	for looked := 0; looked < k.opt.RepairBatch && !l.over; looked++ {
		plans, err := k.store.ListPlans(ctx, l.plans, 1)
		if err != nil {
			return err
		}
		if l.over = len(plans) == 0; l.over {
			return nil
		}
		n, err := k.lookAtPlan(ctx, &plans[0], l)
		if err == nil && n == 0 {
			err = k.retally(ctx, l)
		}
		if err != nil {
			return err
		}
		looked += n
		if l.tasks += chunk; n == 0 {
			l.plans, l.tasks = l.plans+1, 0
		}
	}
	return nil
}

// lookAtPlan looks at some tasks of a plan, and returns how many there are.
func (k *janitor) lookAtPlan(ctx context.Context, p *task.Plan, l *lap) (int, error) {
	from := l.tasks
	if err := k.beginSum(ctx, p, l); err != nil {
		return 0, err
	}
	freed, err := k.store.FreedIDs(ctx, p.ID, from, chunk)
	if err != nil {
		return 0, err
	}
	ids, err := k.store.PlanTasks(ctx, p.ID, from, chunk)
	if err != nil {
		return 0, err
	}
	listed := len(ids)
	ids = append(ids, freed...)
	tasks, err := k.store.Planned(ctx, p.ID, ids, 0)
	if err != nil {
		return 0, err
	}
	l.count(tasks[:listed])
	if from == 0 {
		tasks = append(tasks, plans.Planned{}) // the plan itself
	}
	for i := range tasks {
		if t := &tasks[i]; t.ID == 0 || len(t.Misplaced(p)) > 0 {
			if err := k.store.Requeue(ctx, p.ID, t.ID); err != nil {
				return 0, err
			}
		}
	}
	return len(ids), nil
}

// beginSum begins to count the tasks of a job that is not over.
func (k *janitor) beginSum(ctx context.Context, p *task.Plan, l *lap) (err error) {
	if l.tasks > 0 {
		return nil
	}
	if l.job = nil; !p.Job || plans.Over(p) {
		return nil
	}
	if l.job, err = k.store.PlanSum(ctx, p.ID); errors.Is(err, task.ErrNoPlan) {
		return nil
	}
	if err == nil {
		l.sum, l.seen, l.away = l.job.Away(), 0, 0
	}
	return err
}

// count counts tasks of that job.
func (l *lap) count(tasks []plans.Planned) {
	if l.job == nil {
		return
	}
	l.seen += int64(len(tasks))
	for i := range tasks {
		if tasks[i].State == "" {
			l.away++
		} else {
			l.sum.Count(&tasks[i])
		}
	}
}

// retally corrects what a job counts, if all of it was seen and it stood still: where servers of a release that knows no jobs have ended
// its tasks, it would never be over. Such an end that came meanwhile waits for a later lap.
func (k *janitor) retally(ctx context.Context, l *lap) error {
	is := l.job
	if l.job = nil; is == nil || l.seen != is.Listed || l.away != is.Purged {
		return nil
	}
	right := l.sum.Left == is.Left && l.sum.Bad == is.Bad && l.sum.Skipped == is.Skipped
	for _, end := range statemachine.Outcomes() {
		right = right && (end == statemachine.Succeeded || l.sum.Ended[end] == is.Ended[end])
	}
	if right {
		return nil
	}
	done, err := k.store.Retally(ctx, is, &l.sum)
	if done {
		k.stats.repaired(1)
		k.log.Warn("corrected what a job counts of its tasks", "job", plans.JobName(is.ID), "left", l.sum.Left, "counted", is.Left)
	}
	return err
}

// Workers that have left, or were lost, are known for goneFor, for those who ask what became of them. With names that are
// never used again, as autoscalers and clients of Flock make them, the list would only grow. They are looked for each dismissInterval.
const (
	goneFor         = 7 * 24 * time.Hour
	dismissInterval = time.Hour
)

// dismiss takes away what is known of workers that are gone for long.
func (k *janitor) dismiss(ctx context.Context) error {
	all := 0
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		gone, next, err := k.store.DismissWorkers(ctx, goneFor, cursor)
		if err != nil {
			return err
		}
		all, cursor = all+gone, next
	}
	if all > 0 {
		k.log.Info("forgot workers that are gone for a week", "workers", all)
	}
	return nil
}
