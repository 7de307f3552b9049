package contend

import (
	"context"
	"errors"
	"fmt"

	"github.com/tdf-go/tdf/manager"
)

// Archive handles n tasks, and returns when they and all others are archived, or one of them is wrong.
func Archive(ctx context.Context, m *manager.Manager, n int, check func(*manager.Task) error) error {
	handled := make(map[int64]bool, n)
	var wrong error
	handle := func(_ context.Context, _ *manager.Manager, task *manager.Task) error {
		handled[task.ID] = true
		if err := check(task); err != nil {
			wrong = err
		}
		return nil
	}
	err := m.Run(ctx, manager.Handlers{
		Succeeded: handle, Unhandled: handle,
		Stop: func(ctx context.Context, m *manager.Manager, _ int) bool {
			if wrong != nil || len(handled) < n {
				return wrong != nil
			}
			counts, err := m.Count(ctx)
			return err == nil && counts.Unarchived() == 0
		},
	})
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("%d of %d tasks handled: %w", len(handled), n, context.Cause(ctx))
	}
	return errors.Join(err, wrong)
}
