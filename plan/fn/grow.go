package fn

import (
	"context"
	"fmt"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/worker"
)

// jobKey is where a context has the job.
type jobKey struct{}

// Job is the round in which a function runs, by the context that the function got: its
// ids, its progress, and Stdout for what is to be recorded. It is nil for any other
// context, such as that of a test which calls the function itself.
func Job(ctx context.Context) *worker.Job {
	j, _ := ctx.Value(jobKey{}).(*worker.Job)
	return j
}

// Grow opens the plan in which a function runs, by the context that the function got,
// to add to it: calls, which run after p.Send. The plan does not end before they have.
// A function must not wait for what it adds, since it keeps a slot; let it return ids
// ([Future.ID]), for others to read by [Result].
//
// A function may be run more than once; what it adds in each of its rounds is there
// once, if it sends the same calls in the same portions. A task that was retried by
// hand is another one, and adds again. The error matches [ErrNoJob], or is that of
// plan.Open.
func Grow(ctx context.Context, m *manager.Manager) (*plan.Plan, error) {
	j := Job(ctx)
	if j == nil || j.Plan == 0 {
		return nil, ErrNoJob
	}
	return plan.Open(ctx, m, j.Plan, plan.WithRequestKey(fmt.Sprintf("fn of task %d", j.Task)))
}
