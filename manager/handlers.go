package manager

import (
	"context"

	"github.com/tdf-go/tdf/statemachine"
)

// Handler deals with a task that has ended. What is promised:
//
//   - It is called at least once before the task is archived; again if it
//     returned an error, or if the manager ended or was cut off in between.
//     What it does outside TDF can be made to happen once by
//     [Task.IdempotencyKey], which is the same in each of these calls.
//   - It is never called by two managers at once. Each task is handled under a
//     lease, [manager] handling_lease. If that cannot be renewed in time, ctx ends
//     with the cause [ErrHandlingLost], and the handler must return: another
//     manager is called for the task a little later. A handler that goes on
//     all the same, or whose process was frozen until then, may overlap with that.
//   - The task is archived once, after it returned nil, and only if no other
//     manager has been given the task meanwhile.
//
// An error leaves the task for a later round, of this manager after [manager]
// handler_backoff, which doubles with each error up to handler_backoff_max, of
// another one at any time; see [Manager.Stats]. Other tasks do not wait for it.
type Handler func(ctx context.Context, m *Manager, t *Task) error

// Handlers is what Run calls. Each may be nil: tasks that ended in a state
// without a handler, and without [Handlers.Unhandled], are archived.
type Handlers struct {
	// In each round tasks are handled in this order of states.
	Succeeded, Failed, TimedOut, Expired Handler
	Cancelled, Terminated, Orphaned      Handler
	// Unhandled is called for tasks that ended in a state without a handler of
	// its own, so that an outcome nobody thought of is not archived unseen.
	Unhandled Handler

	// EndRound is called at the end of each round; round counts from 0. After an
	// error, which is logged, Stop is not asked in this round.
	EndRound func(ctx context.Context, m *Manager, round int) error
	// Stop is asked after EndRound whether Run shall end.
	Stop func(ctx context.Context, m *Manager, round int) bool
}

// of returns the handler for an outcome, nil if there is none.
func (h *Handlers) of(outcome statemachine.State) Handler {
	own := map[statemachine.State]Handler{
		statemachine.Succeeded: h.Succeeded, statemachine.Failed: h.Failed,
		statemachine.TimedOut: h.TimedOut, statemachine.Expired: h.Expired,
		statemachine.Cancelled: h.Cancelled, statemachine.Terminated: h.Terminated,
		statemachine.Orphaned: h.Orphaned,
	}[outcome]
	if own == nil {
		return h.Unhandled
	}
	return own
}
