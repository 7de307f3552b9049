package plans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// NewPlan makes a plan, to which tasks can be added (see OpenRequest.Plan); nothing of it runs before
// [Plans.SteerPlan] makes it ready. It returns a *statemachine.FieldError for what cannot be, and an error that matches
// [task.ErrRequestKey] together with the id if the key was used for another plan.
func (s *Plans) NewPlan(ctx context.Context, spec task.PlanSpec) (task.PlanID, error) {
	if spec.RequestKey == "" {
		return 0, errors.New("plan: a request needs a key")
	}
	if len(spec.Name) > 256 || strings.ContainsAny(spec.Name, "\r\n") {
		return 0, &statemachine.FieldError{Field: "name", Value: spec.Name, Want: "one line of at most 256 bytes"}
	}
	switch spec.OnFailure {
	case "":
		spec.OnFailure = task.FailureCancels
	case task.FailureCancels, task.FailureHolds, task.FailureContinues:
	default:
		return 0, &statemachine.FieldError{Field: "on_failure", Value: string(spec.OnFailure), Want: "cancel, hold or continue"}
	}
	if err := checkJob(&spec); err != nil {
		return 0, err
	}
	args := []any{int(tasks.RequestTTL.Seconds()), "name", spec.Name, "on_failure", string(spec.OnFailure)}
	if spec.Job {
		args = append(args, jobArgs(spec)...)
	}
	if spec.Contents != "" {
		args = append(args, "digest", spec.Contents)
	}
	v, err := s.Run(ctx, "plan", conn.Subject{Request: "plan:" + spec.RequestKey}, args...)
	if err != nil {
		return 0, err
	}
	number, _ := v.(int64)
	id := task.PlanID(number)
	if id < 0 {
		return -id, fmt.Errorf("plan %d: %w", -id, task.ErrRequestKey)
	}
	return id, nil
}

// checkJob returns an error for what only a job has, and for what it cannot have.
func checkJob(spec *task.PlanSpec) error {
	wrong := func(field, value, want string) error {
		return &statemachine.FieldError{Field: field, Value: value, Want: want}
	}
	switch {
	case spec.Window < 0:
		return wrong("window", strconv.Itoa(spec.Window), "a number of tasks that is not negative")
	case !spec.Job && spec.Window > 0:
		return wrong("window", strconv.Itoa(spec.Window), "0: only a job has a window")
	case !spec.Job && len(spec.After) > 0:
		return wrong("after", afterText(spec.After), "empty: only a job comes after others")
	}
	if needs, ok := errors.AsType[*statemachine.FieldError](task.CheckNeeds(needsOf(spec.After), 0)); ok {
		return wrong("after", needs.Value, needs.Want)
	}
	return nil
}

// JobName is what people call a job, and the field plan of its tasks: j7.
func JobName(id task.PlanID) string { return "j" + strconv.FormatInt(int64(id), 10) }

// HeldByJob is how HeldBy begins where the name of a job follows, which this one comes after.
const HeldByJob = "job "

// Gated reports whether servers open the tasks of a job, and not its submission: it has a window, or comes after others.
func Gated(spec *task.PlanSpec) bool { return spec.Window > 0 || len(spec.After) > 0 }

// Runs reports whether tasks of a plan start that wait for nothing else.
func Runs(p *task.Plan) bool {
	return p.State == task.PlanReady || p.State == task.PlanBuilding && p.Job && !Gated(&p.PlanSpec)
}

// Over reports whether a plan is over, also for the jobs that come after it.
func Over(p *task.Plan) bool {
	return p.Left <= 0 && (p.State == task.PlanCompleted || p.State == task.PlanFailed || p.State == task.PlanCancelled)
}

// WindowText says what the window of a job means.
func WindowText(p *task.Plan) string {
	return fmt.Sprintf("at most %d tasks of job %s are open or run at a time", p.Window, JobName(p.ID))
}

// gated is the field job of one whose tasks do not run at once; of others it is 1.
const gated = "gated"

// jobArgs are the fields of a job, with their values.
func jobArgs(spec task.PlanSpec) []any {
	if !Gated(&spec) {
		return []any{"job", "1"}
	}
	args := []any{"job", gated}
	if spec.Window > 0 {
		args = append(args, "window", spec.Window)
	}
	if len(spec.After) > 0 {
		args = append(args, "after", afterText(spec.After))
	}
	return args
}

// needsOf are what a job comes after, as needs of tasks: they are checked and written in the same way.
func needsOf(after []task.PlanNeed) []task.Need {
	needs := make([]task.Need, len(after))
	for i, n := range after {
		needs[i] = task.Need{Task: int64(n.Plan), On: n.On}
	}
	return needs
}

// afterText is the field after: "6 8:any".
func afterText(after []task.PlanNeed) string {
	texts := make([]string, len(after))
	for i, n := range needsOf(after) {
		texts[i] = n.Text()
	}
	return strings.Join(texts, " ")
}

func parseAfter(text string) (after []task.PlanNeed) {
	for _, n := range task.ParseNeeds(text) {
		after = append(after, task.PlanNeed{Plan: task.PlanID(n.Task), On: n.On})
	}
	return after
}

// SteerPlan takes a plan to ready, held or cancelled, and returns the state it has then: a plan without tasks is
// completed as soon as it is ready. by says who holds it. The error matches [task.ErrNoPlan] or [task.ErrPlanState].
func (s *Plans) SteerPlan(ctx context.Context, id task.PlanID, to task.PlanState, by string) (task.PlanState, error) {
	from := SteeredFrom(to)
	if from == nil {
		return "", &statemachine.FieldError{Field: "state of a plan", Value: string(to), Want: "ready, held or cancelled"}
	}
	args := []any{int64(id), string(to), by}
	for _, state := range from {
		args = append(args, string(state))
	}
	r, err := s.RunList(ctx, "steer", conn.Subject{Plan: id}, args...)
	if err != nil {
		return "", err
	}
	state := task.PlanState(r.Text(1))
	switch r.Number(0) {
	case -2:
		return "", noPlan(id)
	case -1:
		return state, &tasks.PlanStateError{ID: id, State: state}
	}
	return state, nil
}

// SteeredFrom are the states in which a plan may be taken to ready, held or cancelled.
func SteeredFrom(to task.PlanState) []task.PlanState {
	return map[task.PlanState][]task.PlanState{
		task.PlanReady:     {task.PlanBuilding, task.PlanHeld},
		task.PlanHeld:      {task.PlanReady},
		task.PlanCancelled: {task.PlanBuilding, task.PlanReady, task.PlanHeld},
	}[to]
}

// Plan returns the plan with that id. The error matches [task.ErrNoPlan] if there is none.
func (s *Plans) Plan(ctx context.Context, id task.PlanID) (*task.Plan, error) {
	plans, err := s.PlansOf(ctx, []task.PlanID{id})
	if err != nil {
		return nil, err
	}
	if len(plans) == 0 {
		return nil, noPlan(id)
	}
	return &plans[0], nil
}

func noPlan(id task.PlanID) error { return fmt.Errorf("plan %d: %w", id, task.ErrNoPlan) }

// PlanIDs returns up to limit ids of plans, the newest first, from a rank on.
func (s *Plans) PlanIDs(ctx context.Context, offset, limit int) ([]task.PlanID, error) {
	names, err := s.Redis.ZRevRange(ctx, s.Keys.Plans(), int64(offset), int64(offset+limit-1)).Result()
	if err != nil {
		return nil, s.Failed("plans", err)
	}
	return numbers[task.PlanID](names), nil
}

// ListPlans reads the plans of [Plans.PlanIDs] that are still there.
func (s *Plans) ListPlans(ctx context.Context, offset, limit int) ([]task.Plan, error) {
	ids, err := s.PlanIDs(ctx, offset, limit)
	if err != nil {
		return nil, err
	}
	return s.PlansOf(ctx, ids)
}

// HalfBuilt returns the plans that should be ready by now, the newest first.
func (s *Plans) HalfBuilt(ctx context.Context) ([]task.Plan, error) {
	ids, err := s.building(ctx)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	plans, err := s.PlansOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	now, err := s.Now(ctx)
	return slices.DeleteFunc(plans, func(plan task.Plan) bool { return !plan.HalfBuilt(task.Moment(now)) }), err
}

// building are the ids of the plans that are not ready yet.
func (s *Plans) building(ctx context.Context) (ids []task.PlanID, err error) {
	const page = 1000
	for offset := 0; ; offset += page {
		found, err := s.PlanIDs(ctx, offset, page)
		if err != nil {
			return nil, err
		}
		states := make([]*redis.StringCmd, len(found))
		err = s.Pipelined(ctx, "plans", func(p redis.Pipeliner) {
			for i, id := range found {
				states[i] = p.HGet(ctx, s.Keys.Plan(id), "state")
			}
		})
		if err != nil {
			return nil, err
		}
		for i, id := range found {
			if task.PlanState(states[i].Val()) == task.PlanBuilding {
				ids = append(ids, id)
			}
		}
		if len(found) < page {
			return ids, nil
		}
	}
}

// PlanTasks returns up to limit ids of tasks of a plan, in the order in which they were added, from a rank on.
func (s *Plans) PlanTasks(ctx context.Context, id task.PlanID, offset, limit int) ([]int64, error) {
	names, err := s.Redis.LRange(ctx, s.Keys.PlanTasks(id), int64(offset), int64(offset+limit-1)).Result()
	if err != nil {
		return nil, s.Failed("plan", err)
	}
	return numbers[int64](names), nil
}

// PlanTasksBefore returns the ids of up to most tasks of a plan, those that were added last before the task at a rank, in the order in
// which they were added. A negative rank means the end of the list. first is the rank of the first id, 0 if there is none. A damaged id
// comes as 0.
func (s *Plans) PlanTasksBefore(ctx context.Context, id task.PlanID, rank, most int) (ids []int64, first int, err error) {
	key := s.Keys.PlanTasks(id)
	if rank < 0 {
		all, err := s.Redis.LLen(ctx, key).Result()
		if err != nil {
			return nil, 0, s.Failed("plan", err)
		}
		rank = int(all)
	}
	if rank == 0 {
		return nil, 0, nil
	}
	first = max(0, rank-most)
	names, err := s.Redis.LRange(ctx, key, int64(first), int64(rank-1)).Result()
	if err != nil {
		return nil, 0, s.Failed("plan", err)
	}
	if len(names) == 0 {
		return nil, 0, nil
	}
	for _, name := range names {
		ids = append(ids, conn.IDOf(name))
	}
	return ids, first, nil
}

func numbers[ID int64 | task.PlanID](texts []string) []ID {
	ids := make([]ID, 0, len(texts))
	for _, text := range texts {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			ids = append(ids, ID(n))
		}
	}
	return ids
}

// PlansOf reads the plans with the ids, without those that are not there.
func (s *Plans) PlansOf(ctx context.Context, ids []task.PlanID) ([]task.Plan, error) {
	cmds := make([]*redis.MapStringStringCmd, len(ids))
	err := s.Pipelined(ctx, "plan", func(p redis.Pipeliner) {
		for i, id := range ids {
			cmds[i] = p.HGetAll(ctx, s.Keys.Plan(id))
		}
	})
	if err != nil {
		return nil, err
	}
	plans := make([]task.Plan, 0, len(ids))
	for i, id := range ids {
		if fields := cmds[i].Val(); fields["state"] != "" {
			plans = append(plans, decodePlan(id, fields))
		}
	}
	return plans, nil
}

// decodePlan reads a plan; what somebody has damaged counts as 0.
func decodePlan(id task.PlanID, fields map[string]string) task.Plan {
	number := func(field string) int64 { n, _ := strconv.ParseInt(fields[field], 10, 64); return n }
	stamp := func(field string) time.Time { return task.ParseMoment(fields[field]) }
	p := task.Plan{
		PlanSpec: task.PlanSpec{Name: fields["name"], OnFailure: task.OnFailure(fields["on_failure"]), Job: fields["job"] != ""},
		ID:       id, State: task.PlanState(fields["state"]),
		HeldBy: fields["held_by"], Total: number("total"), Left: number("left"), Skipped: number("n:skipped"),
		Growing: number("growing"), GrowthError: fields["growth_error"],
		Created: stamp("created"), Ready: stamp("ready"), Over: stamp("ended"), Ended: map[statemachine.State]int64{},
	}
	p.Cut = fields["cut"] != ""
	p.Failures = numbers[int64](strings.Fields(fields["failures"]))
	p.Window, p.After = int(number("window")), parseAfter(fields["after"])
	succeeded := p.Total - p.Left - p.Skipped // and no other end
	for _, st := range statemachine.Outcomes() {
		if n := number("n:" + string(st)); n != 0 && st != statemachine.Succeeded {
			p.Ended[st] = n
			succeeded -= n
		}
	}
	if succeeded != 0 {
		p.Ended[statemachine.Succeeded] = succeeded
	}
	return p
}

// Work is something that servers have to do for plans: tell the dependants of a task, move tasks of a plan, or open steps
// of one (see package growth).
type Work struct {
	// Task, Plan or Growth, of a plan, is the id; the others are 0.
	Task         int64
	Plan, Growth task.PlanID
}

// DueWork returns what servers have to do for plans, the oldest first, at most limit of it from rank offset on.
func (s *Plans) DueWork(ctx context.Context, offset, limit int) ([]Work, error) {
	names, err := s.Redis.ZRange(ctx, s.Keys.Draining(), int64(offset), int64(offset+limit-1)).Result()
	if err != nil {
		return nil, s.Failed("plan work", err)
	}
	due := make([]Work, 0, len(names))
	for _, name := range names {
		id, err := strconv.ParseInt(name[min(1, len(name)):], 10, 64)
		switch {
		case err != nil:
		case name[0] == 't':
			due = append(due, Work{Task: id})
		case name[0] == 'p':
			due = append(due, Work{Plan: task.PlanID(id)})
		case name[0] == 'g':
			due = append(due, Work{Growth: task.PlanID(id)})
		}
	}
	return due, nil
}

// MaxNotified is the most tasks one call of [Plans.NotifyDependants] takes.
const MaxNotified = 100

// NotifyDependants tells dependants of ended tasks how these ended, at most page of them, and returns for how many of the
// ids, from the first on, all dependants have been told. Each is told once of each end, however often this is called.
func (s *Plans) NotifyDependants(ctx context.Context, page int, ids ...int64) (done int, err error) {
	if len(ids) > MaxNotified || page < 1 {
		return 0, fmt.Errorf("notify: %d tasks in pages of %d: want at most %d, in pages of at least 1", len(ids), page, MaxNotified)
	}
	k := s.Keys
	var of conn.Subject
	for _, id := range ids {
		of.More = append(of.More, k.Task(id), k.Dependants(id), k.Stuck(id))
	}
	v, err := s.Run(ctx, "notify", of, conn.Args([]any{page}, ids...)...)
	if err != nil {
		return 0, err
	}
	n, _ := v.(int64)
	return int(n), nil
}

// Freed is a blocked task of a plan that a server has to move.
type Freed struct {
	Task tasks.TaskHeader
	// DoomedBy is the task because of which it can never run, 0 if it may run now. Skipped says that this is no
	// failure: it was to run only if that one failed.
	DoomedBy int64
	Skipped  bool
	// DoomedAfter is the plan that its job comes after, and that has not ended as it should; 0 for none.
	DoomedAfter task.PlanID
}

// Event is what is to happen to the task.
func (f *Freed) Event() statemachine.Event {
	if f.DoomedBy > 0 || f.DoomedAfter > 0 {
		return statemachine.Cancel
	}
	return statemachine.Unblock
}

// FreedTasks reads up to limit tasks of a plan that servers have to move, from a rank on: none if the plan is not ready.
func (s *Plans) FreedTasks(ctx context.Context, plan task.PlanID, offset, limit int) ([]Freed, statemachine.Time, error) {
	r, err := s.RunList(ctx, "freed", conn.Subject{Plan: plan}, int64(plan), offset, limit)
	if err != nil {
		return nil, 0, err
	}
	found := make([]Freed, len(r.List(1)))
	for i := range found {
		t := r.List(1).List(i)
		header := tasks.DecodeSeen(t.Number(0), t[3:], conn.ClockOf(r, 2))
		found[i] = Freed{Task: header, DoomedBy: t.Number(1), Skipped: t.Text(2) == "1"}
		if found[i].DoomedBy == 0 {
			found[i].DoomedAfter = task.PlanOf(t.Text(1))
		}
	}
	return found, r.Time(0), nil
}

// firstField begins the fields of a plan that hold which version of a source its tasks run.
const firstField = "version:"

// FirstVersion is which version of a source all tasks of a plan run whose submission could not pin it (see task.PinFirst): the
// one that was said first. sha256 is what the caller has, empty if it only asks; empty is returned where nobody has said one.
func (s *Plans) FirstVersion(ctx context.Context, plan task.PlanID, source, sha256 string) (string, error) {
	v, err := s.Run(ctx, "first", conn.Subject{Plan: plan}, firstField+conn.Digest(source), sha256)
	hash, _ := v.(string)
	return hash, err
}
