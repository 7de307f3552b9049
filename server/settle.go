package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// settling is what settling asks of the store.
type settling interface {
	Due(ctx context.Context, limit int) (tasks.Batch, error)
	Listed(ctx context.Context, state statemachine.State, offset, limit int) (tasks.Batch, error)
	ApplyAll(ctx context.Context, commits ...tasks.Commit) ([]tasks.Outcome, error)
	Postpone(ctx context.Context, now statemachine.Time, d statemachine.Duration, ids ...int64) error
	Reindex(ctx context.Context, t *tasks.TaskHeader, grace statemachine.Duration) (bool, error)
	TellOverdue(ctx context.Context, rounds ...*tasks.TaskHeader) error
	NoteStep(ctx context.Context, at statemachine.Time, by time.Duration) error
	FromLostEpoch(t *statemachine.Task) bool
}

// settleExecuted judges executed tasks until none is left but those nothing
// can be decided about.
func (s *Server) settleExecuted(ctx context.Context) (int, error) {
	moved, skip := 0, 0
	for {
		b, err := s.store.Listed(ctx, statemachine.Executed, skip, s.opt.BatchSize)
		if err != nil {
			return moved, err
		}
		s.guard.answered(b.Now)
		if len(b.Tasks) == 0 {
			return moved, nil
		}
		excused, err := s.nodes.excuses(ctx, b.Tasks)
		if err != nil {
			return moved, err
		}
		n, gone, err := s.apply(ctx, s.decide(ctx, b, statemachine.Settle, excused, nil))
		moved += n
		skip += len(b.Tasks) - gone
		if err != nil || len(b.Tasks) < s.opt.BatchSize {
			return moved, err
		}
	}
}

// settleDue moves the tasks whose deadline has come. It returns the next
// deadline and the time it was read at.
func (s *Server) settleDue(ctx context.Context) (moved int, next, now statemachine.Time, err error) {
	for {
		sent := time.Now()
		b, err := s.store.Due(ctx, s.opt.BatchSize)
		if err != nil {
			return moved, statemachine.Never, 0, err
		}
		s.guard.answered(b.Now)
		s.noteStep(ctx, s.steps.look(sent, time.Now(), b.Redis()), b.Now)
		idle := &leftOver{}
		n, _, err := s.apply(ctx, s.decide(ctx, b, statemachine.Deadline, nobody, idle))
		moved += n
		if err == nil {
			err = s.fixDue(ctx, b.Now, idle)
		}
		if err != nil || len(b.Tasks) < s.opt.BatchSize {
			return moved, b.Next, b.Now, err
		}
	}
}

// leftOver are due tasks that a deadline does not move. The overdue ones are their
// workers' to stop.
type leftOver struct {
	sound, overdue []*tasks.TaskHeader
	suspected      []int64
}

// nobody is excused.
func nobody(*tasks.TaskHeader) bool { return false }

// decide asks the state machine about each task of the batch. What cannot be decided about is
// suspected, and gathered in idle where that is given.
func (s *Server) decide(
	ctx context.Context, b tasks.Batch, event statemachine.Event, excused func(*tasks.TaskHeader) bool, idle *leftOver,
) []tasks.Commit {
	commits := make([]tasks.Commit, 0, len(b.Tasks))
	counts := map[statemachine.State]int{}
	for i := range b.Tasks {
		t := &b.Tasks[i]
		if t.Err != nil {
			s.suspects.add(t.ID)
			if idle != nil {
				idle.suspected = append(idle.suspected, t.ID)
			}
			continue
		}
		o := statemachine.Occurrence{
			Event: event, Actor: statemachine.Server, Grace: s.opt.grace(), Excused: excused(t), Random: rand.Float64(),
			FromLostEpoch: s.store.FromLostEpoch(&t.Task), Unbegun: t.Unbegun,
		}
		m, err := moveOf(&t.Task, o, b.Now)
		switch {
		case err == nil && event == statemachine.Deadline && t.Leased():
			idle.overdue = append(idle.overdue, t)
		case err == nil:
			counts[t.State]++
			c := s.commit(t, m)
			if event == statemachine.Settle {
				c.Fields = append(c.Fields, s.elsewhere(ctx, t, &m, b.Now)...)
			}
			commits = append(commits, c)
		case idle != nil && t.State == statemachine.Open: // perhaps a claim could not read what a decision does not need
			s.suspects.add(t.ID)
			idle.suspected = append(idle.suspected, t.ID)
		case idle != nil:
			idle.sound = append(idle.sound, t)
		default:
			s.suspects.add(t.ID)
		}
	}
	for state, n := range counts {
		s.log.LogAttrs(ctx, slog.LevelDebug, "processing", slog.Int("tasks", n), slog.String("state", string(state)))
	}
	return commits
}

// moveOf is what o does to t. What was overdue when its worker was lost was so before, if it had begun.
func moveOf(t *statemachine.Task, o statemachine.Occurrence, now statemachine.Time) (statemachine.Move, error) {
	if o.Event == statemachine.Lose && !o.Unbegun {
		late := o
		late.Event = statemachine.Deadline
		if m, err := statemachine.Decide(t, late, now); err == nil {
			return m, nil
		}
	}
	return statemachine.Decide(t, o, now)
}

// commit is a move with what the server knows of the round that it ends: one that
// was lost, or overran, has no worker to say its class.
func (s *Server) commit(t *tasks.TaskHeader, m statemachine.Move) tasks.Commit {
	o := tasks.Commit{Move: m, Writer: s.opt.Name, Bucket: t.Bucket}
	if m.From == statemachine.Running {
		o.Fields = []string{statemachine.RoundField(m.Round, "class"), string(cutShort(m.Event))}
	}
	return o
}

// cutShort is the class of a round that a server ends: its worker is lost, or its
// time is over.
func cutShort(by statemachine.Event) statemachine.Class {
	if by == statemachine.Lose {
		return statemachine.ClassInfrastructure
	}
	return statemachine.ClassTime
}

// fixDue corrects entries of the deadline index that were there for nothing:
// a task moved by a foreign client, another grace, or one that is damaged. An
// entry that is right was read in the very microsecond of its deadline.
func (s *Server) fixDue(ctx context.Context, now statemachine.Time, idle *leftOver) error {
	var early []int64
	for _, t := range idle.sound {
		changed, err := s.store.Reindex(ctx, t, s.opt.grace())
		if err != nil {
			return err
		}
		if !changed {
			early = append(early, t.ID)
		}
	}
	if err := s.store.Postpone(ctx, now, statemachine.Millisecond, early...); err != nil {
		return err
	}
	if err := s.leave(ctx, now, idle.overdue); err != nil {
		return err
	}
	return s.store.Postpone(ctx, now, timing.FromStd(s.opt.RepairInterval), idle.suspected...)
}

// leave leaves rounds whose time is over to their workers, and tells them. What runs under a
// lease is never given away before it is stopped: its worker reports it, or its lease
// ends, and then the worker has stopped it as well.
func (s *Server) leave(ctx context.Context, now statemachine.Time, overdue []*tasks.TaskHeader) error {
	if len(overdue) == 0 {
		return nil
	}
	ids := make([]int64, len(overdue))
	for i, t := range overdue {
		ids[i] = t.ID
	}
	if err := s.store.TellOverdue(ctx, overdue...); err != nil {
		return err
	}
	return s.store.Postpone(ctx, now, timing.FromStd(pollInterval), ids...)
}

// apply makes the moves, also with an error those before it, and returns how many tasks it moved, and how many are
// gone from where they were: those that another server, or a call whose reply
// was lost, has moved the same way as well. A move that is refused was decided
// from an old read: the next pass sees the task as it is.
func (s *Server) apply(ctx context.Context, commits []tasks.Commit) (moved, gone int, err error) {
	outcomes, err := s.store.ApplyAll(ctx, commits...)
	if err == nil {
		s.guard.touched()
		s.stats.worked()
	}
	for i, o := range outcomes {
		m := &commits[i].Move //nolint:gosec // there is one outcome for each commit
		switch {
		case o.Result == statemachine.Moved:
			moved++
			gone++
			s.logMove(ctx, m)
			s.stats.moved(m)
		case o.Result == statemachine.Repeated:
			gone++
		case errors.Is(o.Err, task.ErrDamaged):
			s.suspects.add(o.ID)
		case o.Err != nil:
			s.log.Debug("could not move task", "error", o.Err, "task", o.ID, "from", string(m.From), "to", string(m.To))
		}
	}
	return moved, gone, err
}

func (s *Server) logMove(ctx context.Context, m *statemachine.Move) {
	var via slog.Attr // an empty one is not written
	if m.Via != "" {
		via = slog.String("via", m.Via)
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "moving task", slog.Int64("task", m.ID), slog.Int("round", m.Round),
		slog.String("from", string(m.From)), slog.String("to", string(m.To)), via)
}

// leastStep is the least that counts as a step of a clock.
const leastStep = time.Second

// steps notices that the clock of Redis steps. Nothing depends on it: a step is named for
// people, who may wonder at what follows from it.
type steps struct {
	// sent and received are when TIME was asked for last, and when it was known.
	sent, received time.Time
	redis          statemachine.Time
}

// look returns how far the clock has stepped since the last look, 0 for not, and less
// than leastStep for not at all.
func (s *steps) look(sent, received time.Time, redis statemachine.Time) time.Duration {
	was := *s
	*s = steps{sent, received, redis}
	if was.received.IsZero() {
		return 0
	}
	passed := timing.ToStd(redis.Sub(was.redis))
	by := min(0, passed-sent.Sub(was.received)) + max(0, passed-received.Sub(was.sent))
	if by.Abs() < leastStep {
		return 0
	}
	return by.Round(100 * time.Millisecond) // it is not known better
}

// noteStep names a step, and keeps it for why and doctor.
func (s *Server) noteStep(ctx context.Context, by time.Duration, at statemachine.Time) {
	switch {
	case by == 0:
		return
	case by < 0:
		s.log.Warn(fmt.Sprintf("the clock of Redis has stepped back by %v: order and lengths of time go on as if it had not, "+
			"start_after and end_before go by it", -by), "by", by)
	default:
		s.log.Warn(fmt.Sprintf("the clock of Redis has stepped forward by %v: what waits or rests has seemingly done so for longer", by),
			"by", by)
	}
	if err := s.store.NoteStep(ctx, at, by); err != nil {
		s.log.Debug("could not keep the step of the clock", "error", err)
	}
}
