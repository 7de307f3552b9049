package manager

import (
	"context"

	"github.com/tdf-go/tdf/statemachine"
)

// Cancel calls tasks off. Open and blocked ones are cancelled at once. Of a
// running one the worker is told to stop: it ends terminated, with the output it
// has written so far. One that has been reported is not opened again. Ended ones
// stay as they are.
//
// What became of each task stands in its Change, in the order of the ids; the
// error is about the calls, and comes with the changes made before it. The
// reason, a line of text or empty, is recorded with the task.
func (m *Manager) Cancel(ctx context.Context, ids []int64, reason string, opts ...ChangeOption) ([]Change, error) {
	return m.change(ctx, statemachine.Cancel, ids, reason, opts)
}

// Hold puts open tasks aside until they are released. See [Manager.Cancel] for
// the answer and the reason.
func (m *Manager) Hold(ctx context.Context, ids []int64, reason string, opts ...ChangeOption) ([]Change, error) {
	return m.change(ctx, statemachine.Hold, ids, reason, opts)
}

// Release opens blocked tasks. Refused are, with an error that matches [ErrWaits] or
// [ErrPlanState], those of plans that wait for others, or of a plan of which nothing
// is to start now. See [Manager.Cancel] for the answer.
func (m *Manager) Release(ctx context.Context, ids []int64, opts ...ChangeOption) ([]Change, error) {
	return m.change(ctx, statemachine.Unblock, ids, "", opts)
}
