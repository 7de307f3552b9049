package manager

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/tdf-go/tdf/internal/store"
)

// OpenOption changes how tasks are opened.
type OpenOption func(*submission)

// WithRequestKey names the submission for 24 hours: given again, with the same
// tasks, it returns the ids of the first time and opens nothing twice, also
// where the first time was cut short. Other tasks, another order or another plan
// are an error that matches [ErrRequestKey], and none of them is opened;
// StartAfter and EndBefore may differ, since they are often counted from now.
// Without it, or with an empty one, a key is made up, which covers replies lost
// on the way.
func WithRequestKey(key string) OpenOption {
	return func(s *submission) { s.key = key }
}

// WithProgress calls f after each batch with the number of tasks opened so far.
func WithProgress(f func(done int)) OpenOption {
	return func(s *submission) { s.progress = f }
}

// Opened is a task of a submission.
type Opened struct {
	ID int64
	// Existing says that the task was there before: one with the same Spec.Key.
	Existing bool
}

// Open opens one task and returns its id, or that of the task that has its key.
// While Redis is away it tries again for some seconds; then the error matches
// [ErrUnreachable]. It matches [ErrNoQueue] if the task's queue is not there.
func (m *Manager) Open(ctx context.Context, spec Spec, opts ...OpenOption) (int64, error) {
	sub := m.newSubmission(opts)
	if sub.made {
		sub.life = store.LoneRequest // an error does not tell the key
	}
	complete, err := sub.complete(ctx, &spec)
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}
	complete.Needs = sub.resolve(spec.Needs)
	sub.batch, sub.given = append(sub.batch, complete), []string{spec.digest()}
	if err = sub.next(ctx); err == nil {
		err = sub.land()
	}
	if err != nil {
		return 0, err
	}
	return sub.opened[0].ID, nil
}

// OpenAll opens many tasks in batches of [manager] batch_size and returns their
// ids in order. It stops at the first error, a *[SubmissionError] that says how
// many were opened; a task that cannot be opened is a *[SpecError] in it. Use
// [Manager.Check] beforehand where nothing shall be opened then.
func (m *Manager) OpenAll(ctx context.Context, specs iter.Seq[Spec], opts ...OpenOption) ([]int64, error) {
	opened, err := m.OpenEach(ctx, specs, opts...)
	ids := make([]int64, 0, len(opened))
	for _, o := range opened {
		ids = append(ids, o.ID)
	}
	return ids, err
}

// OpenEach is [Manager.OpenAll] that also says which tasks were there before,
// because of their keys.
func (m *Manager) OpenEach(ctx context.Context, specs iter.Seq[Spec], opts ...OpenOption) ([]Opened, error) {
	sub := m.newSubmission(opts)
	for spec := range specs {
		if err := sub.add(ctx, &spec); err != nil {
			if earlier := sub.land(); earlier != nil {
				err = earlier
			}
			return sub.opened, sub.failed(err)
		}
	}
	err := sub.next(ctx)
	if err == nil {
		err = sub.land()
	}
	if err != nil {
		return sub.opened, sub.failed(err)
	}
	return sub.opened, nil
}

// openBatch may send the request several times: its key makes that safe.
func (m *Manager) openBatch(ctx context.Context, req store.OpenRequest) ([]store.Opened, error) {
	return patiently(ctx, m, func() ([]store.Opened, error) { return m.store.OpenAll(ctx, req) })
}

func (m *Manager) logOpened(o store.Opened, spec *store.Spec) {
	if o.Existing {
		m.log.Info("task was opened before", "task", o.ID, "program", spec.Program, "key", spec.Key)
		return
	}
	input := spec.Input
	if spec.Argv != nil {
		input = strings.Join(spec.Argv, " ")
	}
	m.log.Info("opened task", "task", o.ID, "program", spec.Program, "input", input)
}
