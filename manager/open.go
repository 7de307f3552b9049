package manager

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/link"
	"github.com/tdf-go/tdf/internal/store"
)

// OpenOption changes how tasks are opened.
type OpenOption func(*submission)

// WithRequestKey names the submission for 24 hours: given again, with the same
// tasks, it returns the ids of the first time and opens nothing twice, also
// where the first time was cut short. Without it a key is made up, which
// covers replies lost on the way.
func WithRequestKey(key string) OpenOption {
	return func(s *submission) { s.key = key }
}

// WithProgress calls f after each batch with the number of tasks opened so far.
func WithProgress(f func(done int)) OpenOption {
	return func(s *submission) { s.progress = f }
}

// Open opens one task and returns its id. While Redis is away it tries again
// for some seconds; then the error matches [ErrUnreachable].
func (m *Manager) Open(ctx context.Context, spec Spec, opts ...OpenOption) (int64, error) {
	sub := m.newSubmission(opts)
	complete, err := m.complete(&spec)
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}
	sub.batch = append(sub.batch, complete)
	if err := sub.send(ctx); err != nil {
		return 0, err
	}
	return sub.ids[0], nil
}

// OpenAll opens many tasks in batches of [manager] batch_size and returns their
// ids in order. It stops at the first error, a *[SubmissionError] that says how
// many were opened; a task that cannot be opened is a *[SpecError] in it. Use
// [Manager.Check] beforehand where nothing shall be opened then.
func (m *Manager) OpenAll(ctx context.Context, specs iter.Seq[Spec], opts ...OpenOption) ([]int64, error) {
	sub := m.newSubmission(opts)
	for spec := range specs {
		if err := sub.add(ctx, &spec); err != nil {
			return sub.ids, sub.failed(err)
		}
	}
	if err := sub.send(ctx); err != nil {
		return sub.ids, sub.failed(err)
	}
	return sub.ids, nil
}

// submission is one call of Open or OpenAll.
type submission struct {
	m        *Manager
	key      string
	progress func(done int)
	size     int
	batch    []store.Spec
	ids      []int64
}

func (m *Manager) newSubmission(opts []OpenOption) *submission {
	s := &submission{m: m, key: store.NewToken(), progress: func(int) {}, size: m.batchSize()}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// batchSize is what one script may take.
func (m *Manager) batchSize() int {
	return min(m.cfg.Manager.BatchSize, store.MaxOpen, store.MaxMoves)
}

func (s *submission) failed(err error) error {
	return &SubmissionError{Opened: len(s.ids), RequestKey: s.key, Err: err}
}

func (s *submission) add(ctx context.Context, spec *Spec) error {
	complete, err := s.m.complete(spec)
	if err != nil {
		return &SpecError{Index: len(s.ids) + len(s.batch), Err: err}
	}
	if s.batch = append(s.batch, complete); len(s.batch) < s.size {
		return nil
	}
	return s.send(ctx)
}

// send opens the batch. Its key is made from the place of its first task, so
// that the same submission repeated makes the same requests.
func (s *submission) send(ctx context.Context) error {
	if len(s.batch) == 0 {
		return nil
	}
	key := fmt.Sprintf("%s:%d", s.key, len(s.ids))
	ids, err := s.m.openBatch(ctx, store.OpenRequest{Key: key, Specs: s.batch})
	if err != nil {
		return err
	}
	if len(ids) != len(s.batch) {
		return fmt.Errorf("%w: %q opened %d tasks where %d are asked for now",
			ErrRequestKey, s.key, len(ids), len(s.batch))
	}
	for i, id := range ids {
		s.m.logOpened(id, &s.batch[i])
	}
	s.ids, s.batch = append(s.ids, ids...), s.batch[:0]
	s.progress(len(s.ids))
	return nil
}

// openPatience is how long opening goes on trying while Redis is away.
const openPatience = 10 * time.Second

// openBatch may send the request several times: its key makes that safe.
func (m *Manager) openBatch(ctx context.Context, req store.OpenRequest) ([]int64, error) {
	giveUp := time.Now().Add(openPatience)
	redis := link.NewSlog(m.log)
	for {
		ids, err := m.store.Open(ctx, req)
		if err == nil {
			redis.Answered()
			return ids, nil
		}
		if !errors.Is(err, ErrUnreachable) || ctx.Err() != nil || time.Now().After(giveUp) {
			return ids, err
		}
		if !m.wait(ctx, redis.Failed(err)) {
			return nil, fmt.Errorf("open: %w", context.Cause(ctx))
		}
	}
}

func (m *Manager) logOpened(id int64, spec *store.Spec) {
	input := spec.Input
	if spec.Argv != nil {
		input = strings.Join(spec.Argv, " ")
	}
	m.log.Info("opened task", "task", id, "program", spec.Program, "input", input)
}
