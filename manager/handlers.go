package manager

import (
	"context"

	"github.com/tdf-go/tdf/statemachine"
)

// Handler deals with a task that has ended. It is called before the task is
// archived: at least once, and again if the manager dies in between, so it must
// not mind being called twice for one task. The task is archived when it
// returns nil. An error leaves the task for a later round, after
// [manager] handler_backoff, which doubles with each error up to
// handler_backoff_max; see [Manager.Stats]. Other tasks do not wait for it.
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
