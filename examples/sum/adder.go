package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/manager"
)

// adder is the manager's side of the example. All its methods are called by
// Run, one at a time.
type adder struct {
	bucket int
	out    io.Writer
	// counted are the tasks whose result is in parts, or was: a handler may be
	// called again for the same task, and its number must not count twice.
	counted map[int64]bool
	// parts are the partial sums for which no task has been opened yet.
	parts []string
	// sending are those that are being opened, again and again if Redis is away.
	sending []string
	// opened counts calls of open that worked; it names the next one.
	opened int
	// failed is why there will be no result.
	failed error
}

func newAdder(bucket int, out io.Writer) *adder {
	return &adder{bucket: bucket, out: out, counted: map[int64]bool{}}
}

func (a *adder) handlers() manager.Handlers {
	return manager.Handlers{
		Succeeded: a.add,
		// A sum without one of its parts is wrong: whatever else ends a task, ends all.
		Unhandled: a.giveUp,
		EndRound:  a.endRound,
		Stop:      a.stop,
	}
}

// add takes the partial sum that a task has printed.
func (a *adder) add(_ context.Context, _ *manager.Manager, t *manager.Task) error {
	if a.counted[t.ID] {
		return nil
	}
	part := strings.TrimSpace(t.Output())
	if isNumber(part) {
		a.counted[t.ID] = true
		a.parts = append(a.parts, part)
	} else {
		a.failed = fmt.Errorf("task %d printed %q, which is no number", t.ID, part)
	}
	return nil // archive the task, also one that printed nonsense
}

func isNumber(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

func (a *adder) giveUp(_ context.Context, _ *manager.Manager, t *manager.Task) error {
	a.failed = fmt.Errorf("task %d (%s %s) has %s: %s", t.ID, t.Program, t.Input, t.EndState(), strings.TrimSpace(t.Last().Error))
	return nil
}

// endRound opens tasks that add up what this round brought.
func (a *adder) endRound(ctx context.Context, m *manager.Manager, round int) error {
	counts, err := m.Count(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "ending round %d (%s) (%d tasks left)\n", round, list(a.parts), counts.Unarchived())
	if len(a.sending) == 0 && len(a.parts) > 1 {
		a.sending, a.parts = a.parts, nil
	}
	if len(a.sending) == 0 {
		return nil
	}
	if err := a.open(ctx, m, slices.Values(a.sending)); err != nil {
		return err // the next round tries again
	}
	a.sending = nil
	return nil
}

// stop ends the run when every task is archived, and no number is on its way.
func (a *adder) stop(ctx context.Context, m *manager.Manager, _ int) bool {
	if a.failed != nil {
		return true
	}
	counts, err := m.Count(ctx)
	return err == nil && counts.Unarchived() == 0
}

// result is the one number left.
func (a *adder) result() (int64, error) {
	if a.failed != nil {
		return 0, a.failed
	}
	if len(a.parts) != 1 {
		return 0, fmt.Errorf("all tasks have ended and %d partial sums are left: did something else work on the namespace?", len(a.parts))
	}
	return strconv.ParseInt(a.parts[0], 10, 64)
}
