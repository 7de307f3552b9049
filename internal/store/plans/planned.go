package plans

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Planned is what is recorded of a task for its plan, and of those that need it.
type Planned struct {
	// Plan is 0 for a task of no plan.
	ID   int64
	Plan task.PlanID
	// State is empty if there is no record; End is how it ended, empty if it has not.
	State, End statemachine.State
	// Step is what it is called in the plan, empty for nothing.
	Step string
	// Needs are the tasks that it needs, Waits is for how many of them it still waits.
	Needs []task.Need
	Waits int64
	// DoomedBy is the task because of which it never runs, RetriedBy the one that repeats it; 0 for none.
	DoomedBy, RetriedBy int64
	// Skipped says that to be doomed is no failure, Held that an operator holds it, Feeds that others need it.
	Skipped, Held, Feeds bool
	// Freed says that servers have to move it, Draining that they have to tell its dependants of its end.
	Freed, Draining bool
	// Dependants and Stuck are how many are on these lists.
	Dependants, Stuck int64
	// Names is how often the two lists name the task that was asked for.
	Names int64
}

// Misplaced says what is wrong with the lists of the servers about a task of a plan: [Plans.Requeue] puts that right.
func (t *Planned) Misplaced(p *task.Plan) (found []string) {
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	free := t.State == statemachine.Blocked && (t.Waits <= 0 || t.DoomedBy > 0)
	switch {
	case t.State == "", t.Plan != p.ID && !t.Freed:
		return nil
	case t.Plan != p.ID:
		say("it is among the tasks of plan %d to be moved, but belongs to plan %d (0: none)", p.ID, t.Plan)
		return found
	case free && !t.Held && !t.Freed:
		say("it is blocked and waits for nothing, but is not among the tasks of plan %d to be moved: no server will", t.Plan)
	case t.Freed && !free:
		say("it is among the tasks of plan %d to be moved, but is %s and waits for %d", p.ID, t.State, t.Waits)
	}
	if t.mustTell(p) && !t.Draining {
		say("it has ended, and %d that need it will never be told: they wait for ever", t.Dependants)
	}
	return found
}

// mustTell reports whether the task has ended and servers have to tell those that need it, rather than keep them until a retry.
func (t *Planned) mustTell(p *task.Plan) bool {
	return t.End != statemachine.None && t.Dependants > 0 && t.RetriedBy == 0 &&
		task.NeedsSuccess.Verdict(t.End, t.Skipped, p.OnFailure) != task.VerdictWait
}

// plannedFields are read of each task, in this order.
var plannedFields = []string{
	tasks.PlanField, "state",
	"outcome", "needs", "waits", "doomed_by", "retried_by", "skipped", "hold", "feeds", "step",
}

// plannedLooks are the answers about one task.
type plannedLooks struct {
	fields            *redis.SliceCmd
	freed, draining   *redis.FloatCmd
	dependants, stuck *redis.IntCmd
	named             []*redis.IntSliceCmd
}

// Planned reads tasks of a plan, in the order of the ids, at one moment. If of is above 0, Names is how often their
// lists name that task.
func (s *Plans) Planned(ctx context.Context, plan task.PlanID, ids []int64, of int64) ([]Planned, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	all := make([]plannedLooks, len(ids))
	_, err := s.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			all[i] = s.lookPlanned(ctx, p, plan, id, of)
		}
		return nil
	})
	if err != nil && !conn.AboutData(err) {
		return nil, s.Failed("planned", err)
	}
	found := make([]Planned, len(ids))
	for i := range all {
		found[i] = all[i].tell(ids[i])
	}
	return found, nil
}

func (s *Plans) lookPlanned(ctx context.Context, p redis.Pipeliner, plan task.PlanID, id, of int64) plannedLooks {
	k, text := s.Keys, strconv.FormatInt(id, 10)
	l := plannedLooks{
		fields: p.HMGet(ctx, k.Task(id), plannedFields...), freed: p.ZScore(ctx, k.Freed(plan), text),
		draining: p.ZScore(ctx, k.Draining(), "t"+text), dependants: p.LLen(ctx, k.Dependants(id)), stuck: p.LLen(ctx, k.Stuck(id)),
	}
	if of <= 0 {
		return l
	}
	for _, on := range []task.When{task.NeedsSuccess, task.NeedsAny, task.NeedsFailure} {
		entry := task.Need{Task: of, On: on}.Text()
		for _, key := range []string{k.Dependants(id), k.Stuck(id)} {
			l.named = append(l.named, p.LPosCount(ctx, key, entry, 0, redis.LPosArgs{}))
		}
	}
	return l
}

// tell says what was found; what somebody has damaged counts as 0.
func (l *plannedLooks) tell(id int64) Planned {
	f := tasks.TextsOf(plannedFields, l.fields.Val())
	number := func(field string) int64 { n, _ := strconv.ParseInt(f[field], 10, 64); return n }
	t := Planned{
		ID: id, Plan: task.PlanOf(f[tasks.PlanField]), State: statemachine.State(f["state"]), Step: f["step"],
		Needs: task.ParseNeeds(f["needs"]), Waits: number("waits"),
		DoomedBy: number("doomed_by"), RetriedBy: number("retried_by"), Skipped: f["skipped"] == "1", Feeds: f["feeds"] == "1",
		Freed: l.freed.Err() == nil, Draining: l.draining.Err() == nil, Dependants: l.dependants.Val(), Stuck: l.stuck.Val(),
	}
	_, t.Held = f["hold"]
	if t.End = t.State; t.State == statemachine.Archived {
		t.End = statemachine.State(f["outcome"])
	}
	if !t.End.IsOutcome() {
		t.End = statemachine.None
	}
	for _, at := range l.named {
		t.Names += int64(len(at.Val()))
	}
	return t
}

// Dependants reads the ids in the list of a task's dependants, or of its stuck ones: at most limit, from offset
// on. A malformed id is returned as 0.
func (s *Plans) Dependants(ctx context.Context, id int64, stuck bool, offset, limit int) ([]int64, error) {
	key := s.Keys.Dependants(id)
	if stuck {
		key = s.Keys.Stuck(id)
	}
	entries, err := s.Redis.LRange(ctx, key, int64(offset), int64(offset+limit-1)).Result()
	if err != nil && !conn.AboutData(err) {
		return nil, s.Failed("dependants", err)
	}
	ids := make([]int64, len(entries))
	for i, entry := range entries {
		if needs := task.ParseNeeds(entry); len(needs) == 1 {
			ids[i] = needs[0].Task
		}
	}
	return ids, nil
}

// FreedIDs reads the ids of up to limit tasks of a plan that servers have to move, from a rank on. A damaged id comes as 0.
func (s *Plans) FreedIDs(ctx context.Context, plan task.PlanID, offset, limit int) ([]int64, error) {
	names, err := s.Redis.ZRange(ctx, s.Keys.Freed(plan), int64(offset), int64(offset+limit-1)).Result()
	if err != nil && !conn.AboutData(err) {
		return nil, s.Failed("freed", err)
	}
	ids := make([]int64, len(names))
	for i, name := range names {
		ids[i] = conn.IDOf(name)
	}
	return ids, nil
}

// PlanSum is a plan with what is beside its hash, at one moment.
type PlanSum struct {
	task.Plan

	// Bad is how many tasks have ended otherwise than they should; Listed is how many there are, with those that were
	// retried; Freed how many servers have to move, and Draining that the plan is on their list.
	Bad, Listed, Freed int64
	Draining           bool
	// Purged is how many of its tasks have left Redis, with those that were retried; PurgedEnded and PurgedSkipped are how the
	// others of them had ended.
	Purged, PurgedSkipped int64
	PurgedEnded           map[statemachine.State]int64
	// Awaits is for how many plans a job is held, "" for none; Before are the jobs that wait for the plan, as 7:any or 9: each.
	Awaits string
	Before []string
	// Kept says that there are steps to be opened later, and Growth that the servers are to look at them.
	Kept, Growth bool
}

// Room reports whether more tasks of the plan may be opened now.
func (s *PlanSum) Room() bool { return s.Window == 0 || s.Left-s.Freed < int64(s.Window) }

// PlanSum returns what an audit compares of a plan. The error matches [task.ErrNoPlan] if there is none.
func (s *Plans) PlanSum(ctx context.Context, id task.PlanID) (*PlanSum, error) {
	var hash *redis.MapStringStringCmd
	var listed, freed *redis.IntCmd
	var draining, growth *redis.FloatCmd
	var kept *redis.IntCmd
	_, err := s.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		hash, listed = p.HGetAll(ctx, s.Keys.Plan(id)), p.LLen(ctx, s.Keys.PlanTasks(id))
		freed = p.ZCard(ctx, s.Keys.Freed(id))
		draining = p.ZScore(ctx, s.Keys.Draining(), "p"+conn.IDText(id))
		kept, growth = p.Exists(ctx, s.Keys.Growth(id)), p.ZScore(ctx, s.Keys.Draining(), "g"+conn.IDText(id))
		return nil
	})
	if err != nil && !conn.AboutData(err) {
		return nil, s.Failed("plan", err)
	}
	fields := hash.Val()
	sum := &PlanSum{Plan: decodePlan(id, fields), Listed: listed.Val(), Freed: freed.Val(), Draining: draining.Err() == nil}
	sum.Awaits, sum.Before = fields["awaits"], strings.Fields(fields["before"])
	sum.Kept, sum.Growth = kept.Val() > 0, growth.Err() == nil
	if sum.State == "" {
		return nil, noPlan(id)
	}
	number := func(field string) int64 { n, _ := strconv.ParseInt(fields[field], 10, 64); return n }
	sum.Bad, sum.Purged, sum.PurgedSkipped = number("bad"), number("purged"), number("purged:skipped")
	sum.PurgedEnded = map[statemachine.State]int64{}
	for _, end := range statemachine.Outcomes() {
		sum.PurgedEnded[end] = number("purged:" + string(end))
	}
	return sum, nil
}

// Away is a sum of the tasks that have left Redis, for [PlanSum.Count] to go on with.
func (s *PlanSum) Away() (n PlanSum) {
	n.Ended, n.Skipped = maps.Clone(s.PurgedEnded), s.PurgedSkipped
	for end, tasks := range n.Ended {
		if end != statemachine.Succeeded {
			n.Bad += tasks
		}
	}
	return n
}

// Count adds a task of the plan. One that was retried does not count: its retry does.
func (s *PlanSum) Count(t *Planned) {
	switch {
	case t.RetriedBy != 0:
	case t.End == statemachine.None:
		s.Left++
	case t.Skipped:
		s.Skipped++
	default:
		s.Ended[t.End]++
		if t.End == statemachine.Succeeded {
			break
		}
		if s.Bad++; len(s.Failures) < conn.MostFailures {
			s.Failures = append(s.Failures, t.ID)
		}
	}
}

// Still reports whether nothing was added to the plan, retried, counted or removed from s to after: what is listed only grows, and while
// it does not, what is left only shrinks.
func (s *PlanSum) Still(after *PlanSum) bool {
	return s.Listed == after.Listed && s.Left == after.Left && s.State == after.State && s.Purged == after.Purged &&
		s.Growing == after.Growing && s.Growth == after.Growth
}

// Retally makes a job count what its tasks say, if it has not changed since it was read as it is; it reports whether it did.
func (s *Plans) Retally(ctx context.Context, is, want *PlanSum) (bool, error) {
	failures := make([]string, len(want.Failures))
	for i, id := range want.Failures {
		failures[i] = strconv.FormatInt(id, 10)
	}
	args := []any{
		int64(is.ID), string(is.State), is.Listed, is.Purged, is.Left, want.Left, want.Bad, strings.Join(failures, " "),
		"skipped", want.Skipped,
	}
	for _, end := range statemachine.Outcomes() {
		if end != statemachine.Succeeded { // which is what is left of the total
			args = append(args, string(end), want.Ended[end])
		}
	}
	v, err := s.Run(ctx, "retally", conn.Subject{Plan: is.ID}, args...)
	return v == int64(1) || v == int64(2), err
}

// Requeue puts back on the lists of the servers what belongs there, and takes off what does not, about a task of a
// plan or, with task 0, about the plan. No record of a task changes.
func (s *Plans) Requeue(ctx context.Context, plan task.PlanID, task int64) error {
	_, err := s.Run(ctx, "redrain", conn.Subject{Plan: plan, Task: task}, int64(plan), task)
	return err
}
