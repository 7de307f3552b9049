package tasks

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
)

// TakeRequest is one step of a manager on its way through ended tasks. Of each list there are at most [MaxMoves].
type TakeRequest struct {
	// Instance is the lease under which the manager handles tasks. Without one it is granted none, and
	// archives those that no living manager has.
	Instance string
	// Writer is the name that stands in the log of an archived task.
	Writer string
	// Archive are decisions to archive tasks, under a lease only those that the instance was granted. The tasks are given back,
	// whatever becomes of them.
	Archive []statemachine.Move
	// Back are tasks given back.
	Back []int64
	// Ask are tasks asked for, which are in that Outcome.
	Outcome statemachine.State
	Ask     []int64
	// Next asks for ids.
	Next Page
}

// TakeReply is what came of it.
type TakeReply struct {
	// Archived are the outcomes of Archive, in that order.
	Archived []Outcome
	// Granted are those asked for that no other living manager handles, whole: they are this one's now. One that has
	// changed meanwhile may be among them, and one that is damaged.
	Granted []*TaskHeader
	Next    []int64
}

// Take archives tasks, gives others back, is granted the next ones and reads them, and learns which come after that, in one trip. The error
// matches [conn.ErrHandlingLost] if the lease is over; then nothing has changed.
func (s *Tasks) Take(ctx context.Context, t *TakeRequest) (TakeReply, error) {
	if n := max(len(t.Archive), len(t.Back), len(t.Ask)); n > MaxMoves {
		return TakeReply{}, fmt.Errorf("take: %d tasks in one call: want at most %d", n, MaxMoves)
	}
	call, err := s.taking(t)
	if err != nil {
		return TakeReply{}, err
	}
	whole, next := reader{keys: s.Keys, ids: t.Ask}, (*redis.StringSliceCmd)(nil)
	v, err := s.RunReading(ctx, call, func(p redis.Pipeliner) {
		whole.queue(ctx, p)
		next = s.queuePage(ctx, p, t.Next)
	})
	if err != nil {
		return TakeReply{}, err
	}
	if v == int64(-1) {
		return TakeReply{}, fmt.Errorf("take: %w", conn.ErrHandlingLost)
	}
	return s.taken(t, conn.AsReply(v), &whole, next), nil
}

func (s *Tasks) taken(t *TakeRequest, r conn.Reply, whole *reader, next *redis.StringSliceCmd) TakeReply {
	taken := TakeReply{Archived: make([]Outcome, len(t.Archive))}
	for i := range t.Archive {
		taken.Archived[i] = moveOutcome(t.Archive[i].ID, r.Number(i))
		s.Memory.Saw(t.Archive[i].ID) // a manager may have opened none itself
	}
	for i, task := range whole.tasks() {
		if r.Number(len(t.Archive)+i) != 1 {
			continue
		}
		if task == nil {
			task = decodeTask(t.Ask[i], nil) // its hash is gone
		}
		taken.Granted = append(taken.Granted, task)
	}
	taken.Next = pageOf(next)
	return taken
}

// taking is the call of the script.
func (s *Tasks) taking(t *TakeRequest) (conn.ScriptArgs, error) {
	var sets outcomeArgs
	args := []any{t.Instance, writer(t.Writer), string(statemachine.Archive), string(statemachine.Manager), len(t.Back), len(t.Ask), 0}
	if len(t.Ask) > 0 {
		args[len(args)-1] = sets.place(t.Outcome)
	}
	var keys []string
	var archive []any
	for i := range t.Archive {
		m := &t.Archive[i]
		if m.Event != statemachine.Archive || m.To != statemachine.Archived {
			return conn.ScriptArgs{}, fmt.Errorf("take: task %d: %s: want %s", m.ID, m.Event, statemachine.Archive)
		}
		keys = append(keys, s.Keys.Task(m.ID))
		archive = append(archive, m.ID, sets.place(m.From), m.Round, m.Rev)
	}
	args = append(args, len(sets))
	more := make([]string, 0, len(sets)+len(keys))
	for _, outcome := range sets {
		args, more = append(args, string(outcome)), append(more, s.Keys.State(outcome))
	}
	args = append(conn.Args(conn.Args(args, t.Back...), t.Ask...), archive...)
	return conn.ScriptArgs{Name: "take", Of: conn.Subject{More: append(more, keys...)}, Args: args}, nil
}

// outcomeArgs gathers the outcomes that a call is about; their places begin at 1.
type outcomeArgs []statemachine.State

func (o *outcomeArgs) place(outcome statemachine.State) int {
	if i := slices.Index(*o, outcome); i >= 0 {
		return i + 1
	}
	*o = append(*o, outcome)
	return len(*o)
}
