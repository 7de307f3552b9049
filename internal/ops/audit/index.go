package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/statemachine"
)

// unknown looks for what state sets list beyond the ids that were given out, and
// audits the tasks that exist among those that epochs left out.
func (a *auditor) unknown(ctx context.Context) error {
	for _, state := range statemachine.States() {
		x := upkeep.Index{Kind: upkeep.IndexState, Of: string(state)}
		err := a.eachMember(ctx, x, func(members []string) error { return a.beyond(ctx, x, members) })
		if err != nil {
			return err
		}
	}
	return nil
}

// eachMember calls f with parts of an index.
func (a *auditor) eachMember(ctx context.Context, x upkeep.Index, f func([]string) error) error {
	for cursor := uint64(0); ; {
		members, next, err := a.store.Members(ctx, x, cursor)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(members, chunk) {
			if err := f(part); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// beyond compares ids with the newest one; that may have grown meanwhile.
func (a *auditor) beyond(ctx context.Context, x upkeep.Index, members []string) error {
	last := a.report.TaskID
	var found, all []int64
	for _, text := range members {
		id := x.IDOf(text)
		all = append(all, id)
		if id > last {
			var err error
			if last, err = a.store.LastID(ctx); err != nil {
				return err
			}
		}
		switch {
		case id == 0:
			a.say(sprint(0, Unknown, "%s lists %q, which is not an id", x, text))
		case id > last:
			a.say(sprint(id, Unknown, "listed in %s, but the newest id is %d", x, last))
		case a.leftOut(id) && !a.there[id]:
			a.there[id] = true
			found = append(found, id)
		}
	}
	a.report.Account.LeftOut -= int64(len(found))
	if err := a.backFromGone(ctx, x, all); err != nil {
		return err
	}
	return a.tasks(ctx, found)
}

// stray is a member of an index that does not belong there.
type stray struct {
	index  upkeep.Index
	member string
}

// strays looks for members of indices that do not belong there: tasks that are in line
// and not open, or held and not running.
func (a *auditor) strays(ctx context.Context) error {
	suspects, err := a.suspects(ctx)
	if err == nil {
		suspects, err = lasting(ctx, a.pause, suspects, a.still)
	}
	if err != nil {
		return err
	}
	slices.SortFunc(suspects, func(x, y stray) int {
		return cmp.Or(cmp.Compare(x.index.IDOf(x.member), y.index.IDOf(y.member)), cmp.Compare(x.index.String(), y.index.String()))
	})
	return a.judge(ctx, suspects)
}

// lasting are those suspects that are there at each of some more looks.
func lasting[T any](
	ctx context.Context, pause time.Duration, suspects []T, still func(context.Context, []T) ([]T, error),
) (_ []T, err error) {
	for look := 1; err == nil && look < looks && len(suspects) > 0; look++ {
		if !timing.Pause(ctx, pause) {
			return nil, ctx.Err()
		}
		suspects, err = still(ctx, suspects)
	}
	return suspects, err
}

// suspects are the members that do not belong where they were found.
func (a *auditor) suspects(ctx context.Context) (suspects []stray, err error) {
	indices, err := a.store.Indices(ctx)
	for _, x := range indices {
		if err != nil {
			return nil, err
		}
		err = a.eachMember(ctx, x, func(members []string) error {
			strays, err := a.store.Strays(ctx, x, members)
			for _, m := range strays {
				if len(suspects) < most {
					suspects = append(suspects, stray{x, m})
				}
			}
			return err
		})
	}
	return suspects, err
}

// still are those suspects that are there and wrong now as well.
func (a *auditor) still(ctx context.Context, suspects []stray) ([]stray, error) {
	byIndex := map[upkeep.Index][]string{}
	for _, s := range suspects {
		byIndex[s.index] = append(byIndex[s.index], s.member)
	}
	var left []stray
	for x, members := range byIndex {
		for part := range slices.Chunk(members, chunk) {
			again, err := a.store.Strays(ctx, x, part)
			if err != nil {
				return nil, err
			}
			for _, m := range again {
				left = append(left, stray{x, m})
			}
		}
	}
	return left, nil
}

// judge tells of strays, but of those that clients in another language leave behind
// by their claims: the next claim that meets them drops them.
func (a *auditor) judge(ctx context.Context, strays []stray) error {
	for part := range slices.Chunk(strays, chunk) {
		ids := make([]int64, len(part))
		for i, s := range part {
			ids[i] = s.index.IDOf(s.member)
		}
		tasks, _, err := a.store.Inspect(ctx, ids)
		if err != nil {
			return err
		}
		for i, s := range part {
			if s.index.Kind == upkeep.IndexReady && foreignRound(&tasks[i].Task) {
				continue
			}
			if ids[i] == 0 {
				a.say(sprint(0, Index, "%s lists %q, but does not belong there: that is not an id", s.index, s.member))
				continue
			}
			a.say(sprint(ids[i], Index, "listed in %s, but does not belong there: %s", s.index, whereIs(&tasks[i].Task)))
		}
	}
	return nil
}

func foreignRound(t *tasks.TaskHeader) bool {
	return t.Err == nil && t.Current.Claim == "" && t.Current.Running > 0
}

func whereIs(t *tasks.TaskHeader) string {
	switch {
	case t.Err != nil:
		return t.Err.Error()
	case t.State == statemachine.Running:
		return fmt.Sprintf("it is %s on worker %q", t.State, t.Worker)
	default:
		return fmt.Sprintf("it is %s in bucket %s", t.State, t.Bucket.Name())
	}
}

// counts looks for places taken by rounds that do not run. How
// many there are is not judged: a limit may have been lowered.
func (a *auditor) counts(ctx context.Context) error {
	suspects, err := a.miscounted(ctx)
	if err == nil {
		suspects, err = lasting(ctx, a.pause, suspects, func(ctx context.Context, was []fleet.CountedRound) ([]fleet.CountedRound, error) {
			is, err := a.miscounted(ctx)
			return slices.DeleteFunc(was, func(c fleet.CountedRound) bool { return !slices.Contains(is, c) }), err
		})
	}
	for _, c := range suspects {
		a.say(sprint(c.ID, Index, "counted as running in queue %q on node %q (empty: any), but it does not run there", c.Queue, c.Node))
	}
	return err
}

// miscounted are the entries of tasks that do not run there now.
func (a *auditor) miscounted(ctx context.Context) ([]fleet.CountedRound, error) {
	all, err := a.store.Counted(ctx)
	if err != nil {
		return nil, err
	}
	var wrong []fleet.CountedRound
	for part := range slices.Chunk(all, chunk) {
		ids := make([]int64, len(part))
		for i := range part {
			ids[i] = part[i].ID
		}
		found, _, err := a.store.Inspect(ctx, ids)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if !runsThere(&found[i].Task, part[i]) && !slices.Contains(wrong, part[i]) {
				wrong = append(wrong, part[i])
			}
		}
	}
	return wrong, nil
}

func runsThere(t *tasks.TaskHeader, c fleet.CountedRound) bool {
	return t.Err == nil && t.State == statemachine.Running && t.Current.Claim != "" &&
		(c.Queue == "" || c.Queue == t.Bucket.QueueName()) && (c.Node == "" || c.Node == t.Node)
}

// foreignDelay is how long the servers may take to give a claim of a foreign
// client its deadline.
const foreignDelay = 60 * statemachine.Second

// indices: an open task that may still run lies in its bucket, and one with a
// deadline in the index of deadlines.
func (s *snapshot) indices() {
	if !s.adopted {
		return
	}
	t := &s.Task
	if t.State == statemachine.Open && s.now <= t.EndBefore {
		switch {
		case !s.InBucket:
			s.say(Index, "it is open, but not in its bucket %s: no worker finds it", t.Bucket.Name())
		case s.Unlisted:
			s.say(Index, "it is open, but its bucket %s is not on the list of buckets: no worker finds it", t.Bucket.Name())
		}
	}
	if s.Uncounted {
		s.say(Index, "it runs in queue %s on node %q, but is not counted there: a limit may be exceeded", t.Bucket.QueueName(), t.Node)
	}
	if s.Unwatched {
		s.say(Index, "it runs on worker %s, but no lease watches over it: nobody learns of that worker's death", t.Worker)
	}
	if s.Abandoned {
		s.say(Index, "worker %s has registered anew since it claimed the round: nobody runs it", t.Worker)
	}
	if s.Untold {
		s.say(Index, "a stop was asked for, but worker %s will not hear of it", t.Worker)
	}
	s.deadline()
}

// deadline checks that a task with a deadline is in the index of deadlines in time.
// For ended tasks in that index see strays.
func (s *snapshot) deadline() {
	t := &s.Task
	foreign := t.State == statemachine.Running && t.Current.Claim == ""
	fresh := foreign && s.now.Sub(t.Current.Running) < foreignDelay
	want := t.Deadline(s.grace)
	switch {
	case fresh || want == statemachine.Never && (s.Due == statemachine.Never || foreign || s.setToRest()):
	case want == statemachine.Never:
		s.say(Index, "it is %s without a deadline, but in the index of deadlines at %s", t.State, s.Due.Text())
	case s.Due == statemachine.Never:
		s.say(Index, "it is %s with a deadline, but not in the index of deadlines", t.State)
	case s.Due > want.Add(foreignDelay) && s.Due > s.now.Add(foreignDelay):
		s.say(Index, "its deadline is %s, but the index of deadlines has it at %s", want.Text(), s.Due.Text())
	}
}

// setToRest reports whether the task has no deadline because of the state it is in.
func (s *snapshot) setToRest() bool {
	return s.Task.State == statemachine.Executed || s.Task.State == statemachine.Archived || s.Task.State.IsOutcome()
}
