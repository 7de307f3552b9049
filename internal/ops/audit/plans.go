package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// planAudit is the audit of one plan.
type planAudit struct {
	a  *auditor
	id task.PlanID
	// before and after are what it counted before and after all else was read.
	before, after *plans.PlanSum
	// tasks are all of them as they were seen.
	tasks map[int64]*plans.Planned
	// repeats are those that repeat another one.
	repeats map[int64]bool
	// names is how often the lists of dependants name a task.
	names map[int64]int64
	// gone is how many of its tasks have left Redis; these are not in tasks.
	gone int64
	// view are its steps that are opened once it runs, unless they are unreadable.
	view       *growth.View
	unreadable error
}

// plans audits all plans: what they count, what each task waits for, and whether servers have on their lists what
// keeps a plan going. It comes after the walk over the tasks, which says to which plan each of them belongs.
func (a *auditor) plans(ctx context.Context) error {
	ids, err := a.planIDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := a.plan(ctx, id); err != nil {
			return err
		}
		a.report.Plans++
		delete(a.members, id)
	}
	if len(a.members) > 0 {
		if err := a.readPurged(ctx); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.members)) {
		for _, task := range a.members[id] {
			if a.isPurged(task) { // and the plan with it
				continue
			}
			a.say(sprint(task, Plan, "it belongs to plan %d, and there is no such plan", id))
		}
	}
	return nil
}

func (a *auditor) planIDs(ctx context.Context) ([]task.PlanID, error) {
	seen := map[task.PlanID]bool{}
	list := func(offset, limit int) ([]task.Plan, error) { return a.store.ListPlans(ctx, offset, limit) }
	err := eachPage(chunk, list, func(found []task.Plan) error {
		for i := range found {
			seen[found[i].ID] = true // new ones push the others back: some come twice
		}
		return nil
	})
	return slices.Sorted(maps.Keys(seen)), err
}

// eachPage calls visit for each page of a list, up to the first empty one.
func eachPage[T any](size int, read func(offset, limit int) ([]T, error), visit func([]T) error) error {
	for offset := 0; ; offset += size {
		page, err := read(offset, size)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := visit(page); err != nil {
			return err
		}
	}
}

// plan audits one plan. What is wrong with a task is looked at again together with all that it needs, at one moment;
// what the plan counts is judged when the plan stood still, or, if it never does, by what it may have gone through.
func (a *auditor) plan(ctx context.Context, id task.PlanID) error {
	for look := 1; ; look++ {
		p := &planAudit{a: a, id: id, tasks: map[int64]*plans.Planned{}, repeats: map[int64]bool{}, names: map[int64]int64{}}
		err := p.read(ctx)
		if errors.Is(err, task.ErrNoPlan) {
			return nil
		}
		if err != nil {
			return err
		}
		if !p.still() && look < looks {
			continue
		}
		p.sums()
		p.belonging()
		if s := p.after; s.State == task.PlanReady && s.Freed != 0 && !s.Draining && s.Room() {
			a.say(sprint(0, Plan, "%d tasks of plan %d wait to be moved, and the plan is not on the list of the servers", s.Freed, id))
		}
		if err := a.awaits(ctx, id); err != nil && !errors.Is(err, task.ErrNoPlan) {
			return err
		}
		if err := p.steps(ctx); err != nil && !errors.Is(err, task.ErrNoPlan) {
			return err
		}
		return p.again(ctx, p.suspects())
	}
}

// awaits audits what a job is held for that comes after others. An end of these is told in one script, but read in several: what is wrong
// is looked at again.
func (a *auditor) awaits(ctx context.Context, id task.PlanID) error {
	wrong := ""
	for range looks {
		job, err := a.store.PlanSum(ctx, id)
		if err != nil || job.State != task.PlanHeld || len(job.After) == 0 {
			return err
		}
		if job.Awaits == "" && !strings.HasPrefix(job.HeldBy, "job j") { // a person holds it
			return nil
		}
		if wrong, err = a.wrongAwaits(ctx, job); err != nil || wrong == "" {
			return err
		}
	}
	a.say(sprint(0, Plan, "job %s %s", plans.JobName(id), wrong))
	return nil
}

// wrongAwaits: a job waits for as many plans as will tell it of their end. One that was opened again after it does not.
func (a *auditor) wrongAwaits(ctx context.Context, job *plans.PlanSum) (string, error) {
	tell, of := map[task.PlanID]bool{}, strconv.FormatInt(int64(job.ID), 10)+":"
	for _, after := range job.After {
		p, err := a.store.PlanSum(ctx, after.Plan)
		if err != nil && !errors.Is(err, task.ErrNoPlan) {
			return "", err
		}
		if err == nil && !plans.Over(&p.Plan) && slices.ContainsFunc(p.Before, func(text string) bool { return strings.HasPrefix(text, of) }) {
			tell[p.ID] = true
		}
	}
	if n, counted := len(tell), cmp.Or(job.Awaits, "0"); n == 0 || counted != strconv.Itoa(n) {
		return fmt.Sprintf("is held for %s plans, and %d will tell it of their end", counted, n), nil
	}
	return "", nil
}

// still reports whether nothing happened to a plan while it was read.
func (p *planAudit) still() bool { return p.before.Still(p.after) }

// read reads the whole plan, and what it counts before and after that.
func (p *planAudit) read(ctx context.Context) (err error) {
	if p.before, err = p.a.store.PlanSum(ctx, p.id); err != nil {
		return err
	}
	list := func(offset, limit int) ([]int64, error) { return p.a.store.PlanTasks(ctx, p.id, offset, limit) }
	if err = eachPage(chunk, list, func(ids []int64) error { return p.readTasks(ctx, ids) }); err != nil {
		return err
	}
	// What waits to be moved and is no task of the plan is named by it.
	list = func(offset, limit int) ([]int64, error) { return p.a.store.FreedIDs(ctx, p.id, offset, limit) }
	err = eachPage(namesPage, list, func(ids []int64) error {
		for _, id := range ids {
			if p.tasks[id] == nil {
				p.names[id]++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.readSteps(ctx)
}

// readSteps reads the steps, and what the plan counts after that.
func (p *planAudit) readSteps(ctx context.Context) (err error) {
	p.view, p.unreadable = growth.Read(ctx, p.a.store, p.id)
	if p.unreadable != nil && !errors.Is(p.unreadable, growth.ErrTemplate) {
		return p.unreadable
	}
	p.after, err = p.a.store.PlanSum(ctx, p.id)
	return err
}

// readTasks reads some tasks of the plan, and whom their lists name.
func (p *planAudit) readTasks(ctx context.Context, ids []int64) error {
	found, err := p.a.store.Planned(ctx, p.id, ids, 0)
	if err != nil {
		return err
	}
	var absent []int64
	for i := range found {
		if found[i].State == "" {
			absent = append(absent, found[i].ID)
		}
	}
	if err := p.a.learnPurged(ctx, absent); err != nil {
		return err
	}
	for i := range found {
		if found[i].State == "" && p.a.isPurged(found[i].ID) {
			p.gone++
			continue
		}
		p.tasks[found[i].ID], p.repeats[found[i].RetriedBy] = &found[i], true
		if err := p.readNames(ctx, &found[i]); err != nil {
			return err
		}
	}
	return nil
}

// namesPage is how many dependants one call reads.
const namesPage = 5000

// readNames counts whom the lists of a task name.
func (p *planAudit) readNames(ctx context.Context, t *plans.Planned) error {
	for _, list := range []struct {
		stuck bool
		n     int64
	}{{false, t.Dependants}, {true, t.Stuck}} {
		for offset := 0; int64(offset) < list.n; offset += namesPage {
			ids, err := p.a.store.Dependants(ctx, t.ID, list.stuck, offset, namesPage)
			if err != nil {
				return err
			}
			for _, id := range ids {
				p.names[id]++
			}
		}
	}
	return nil
}

// belonging compares the list of the plan with the tasks that say they belong to it.
func (p *planAudit) belonging() {
	for _, id := range p.a.members[p.id] {
		if p.tasks[id] == nil && !p.a.isPurged(id) {
			p.a.say(sprint(id, Plan, "it belongs to plan %d, which does not list it", p.id))
		}
	}
	if n := int64(len(p.tasks)) + p.gone; n < p.after.Listed && p.still() {
		p.a.say(sprint(0, Plan, "plan %d lists %d tasks, some of them twice or with malformed ids", p.id, p.after.Listed))
	}
}

// tally is what a plan should count: its tasks by what became of them, without those that were retried, and with those that have left
// Redis, which it has counted itself.
func (p *planAudit) tally() (n plans.PlanSum) {
	n = p.after.Away()
	for _, t := range p.tasks {
		n.Count(t)
	}
	n.Total = n.Left + n.Skipped
	for _, tasks := range n.Ended {
		n.Total += tasks
	}
	return n
}

// sums compares what a plan counts with its tasks, and with its state. Where tasks have ended meanwhile each sum must
// lie between what it was before and after; where tasks were added meanwhile nothing is said about it.
func (p *planAudit) sums() {
	before, after := p.before, p.after
	say := func(format string, args ...any) { p.a.say(sprint(0, Plan, format, args...)) }
	if text := wrongState(after); text != "" {
		say("plan %d is %s, but %s", p.id, after.State, text)
	}
	if before.Listed != after.Listed || before.Purged != after.Purged {
		p.a.remark(sprint(0, Plan, "plan %d grew, or its tasks left Redis, all the time: what it counts was not compared; verify again", p.id))
		return
	}
	if int64(len(p.tasks))+p.gone != after.Listed {
		return // see belonging
	}
	if p.gone != after.Purged {
		say("plan %d counts %d tasks that have left Redis, and there are %d", p.id, after.Purged, p.gone)
	}
	n := p.tally()
	check := func(what string, counted, was, is int64) {
		if counted < min(was, is) || counted > max(was, is) {
			say("plan %d counts %d %s, and there are %d", p.id, is, what, counted)
		}
	}
	check("tasks", n.Total, before.Total, after.Total)
	check("that have not ended", n.Left, before.Left, after.Left)
	check("that ended badly", n.Bad, before.Bad, after.Bad)
	check("that were skipped", n.Skipped, before.Skipped, after.Skipped)
	for _, end := range statemachine.Outcomes() {
		check(string(end), n.Ended[end], before.Ended[end], after.Ended[end])
	}
}

// wrongState says what a plan counts that cannot be in its state, which keeps its steps until all are opened.
func wrongState(s *plans.PlanSum) string {
	switch s.State {
	case task.PlanReady, task.PlanHeld:
		if s.Left <= 0 && s.Growing <= 0 && !s.Growth {
			return "all its tasks have ended"
		}
	case task.PlanBuilding, task.PlanCompleted, task.PlanFailed, task.PlanCancelled:
	default:
		return "there is no such state"
	}
	switch {
	case s.Growing > 0 && !s.Kept:
		return fmt.Sprintf("%d of its steps are not opened, and are kept nowhere", s.Growing)
	case s.Growing <= 0 && s.Kept && !s.Growth:
		return "it keeps steps, and all are opened"
	case s.Growing > 0 && (s.State == task.PlanCompleted || s.State == task.PlanCancelled):
		return fmt.Sprintf("%d of its steps were not opened", s.Growing)
	}
	return wrongEnd(s)
}

// wrongEnd: a plan that is over has no task left, and says how it went, and since when.
func wrongEnd(s *plans.PlanSum) string {
	switch {
	case s.State != task.PlanCompleted && s.State != task.PlanFailed:
		return ""
	case s.Left > 0:
		return fmt.Sprintf("%d of its tasks have not ended", s.Left)
	case s.State == task.PlanCompleted && s.Bad > 0:
		return fmt.Sprintf("%d of its tasks ended badly", s.Bad)
	case s.State == task.PlanFailed && s.Bad <= 0 && s.GrowthError == "":
		return "none of its tasks ended badly"
	case s.Over.IsZero():
		return "it does not say since when"
	}
	return ""
}
