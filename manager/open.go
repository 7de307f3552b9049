package manager

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

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
	complete, err := sub.complete(ctx, &spec)
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}
	complete.Needs = sub.resolve(spec.Needs)
	sub.batch = append(sub.batch, complete)
	if err := sub.send(ctx); err != nil {
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
			return sub.opened, sub.failed(err)
		}
	}
	if err := sub.send(ctx); err != nil {
		return sub.opened, sub.failed(err)
	}
	return sub.opened, nil
}

// submission is one call of Open or OpenAll.
type submission struct {
	m        *Manager
	key      string
	progress func(done int)
	size     int
	batch    []store.Spec
	opened   []Opened
	queues   map[string]map[string]string // the defaults of each; nil before they are read
	plan     int64                        // that all of them belong to, 0 for none
	needs    int                          // of the batch
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
	return &SubmissionError{Opened: len(s.opened), RequestKey: s.key, Err: err}
}

func (s *submission) add(ctx context.Context, spec *Spec) error {
	complete, err := s.complete(ctx, spec)
	if err != nil {
		if errors.Is(err, ErrUnreachable) || ctx.Err() != nil {
			return err // it is not about the task
		}
		return &SpecError{Index: len(s.opened) + len(s.batch), Err: err}
	}
	if s.full(len(spec.Needs)) {
		if err := s.send(ctx); err != nil {
			return err
		}
	}
	complete.Needs = s.resolve(spec.Needs) // after what it may need was sent
	if err := complete.CheckNeeds(len(s.batch), s.plan > 0); err != nil {
		return &SpecError{Index: len(s.opened) + len(s.batch), Err: err}
	}
	s.batch, s.needs = append(s.batch, complete), s.needs+len(spec.Needs)
	if s.full(0) {
		return s.send(ctx)
	}
	return nil
}

// send opens the batch. Its key is made from the place of its first task, so
// that the same submission repeated makes the same requests.
func (s *submission) send(ctx context.Context) error {
	if len(s.batch) == 0 {
		return nil
	}
	key := fmt.Sprintf("%s:%d", s.key, len(s.opened))
	opened, err := s.m.openBatch(ctx, store.OpenRequest{Key: key, Specs: s.batch, KeyTTL: KeyLife, Plan: s.plan})
	if err != nil {
		return err
	}
	if len(opened) != len(s.batch) {
		return fmt.Errorf("%w: %q opened %d tasks where %d are asked for now",
			ErrRequestKey, s.key, len(opened), len(s.batch))
	}
	for i, o := range opened {
		s.m.logOpened(o, &s.batch[i])
		s.opened = append(s.opened, Opened(o))
	}
	s.batch, s.needs = s.batch[:0], 0
	s.progress(len(s.opened))
	return nil
}

// complete fills in the defaults of queue and configuration.
func (s *submission) complete(ctx context.Context, spec *Spec) (store.Spec, error) {
	if err := s.m.Check(*spec); err != nil {
		return store.Spec{}, err
	}
	name := (&defaults{config: &s.m.cfg.TaskDefaults}).queueOf(spec)
	if s.queues == nil {
		rules, err := patiently(ctx, s.m, func() (store.Rules, error) { return s.m.store.Rules(ctx, "") })
		if err != nil {
			return store.Spec{}, err
		}
		s.queues = map[string]map[string]string{DefaultQueue: nil}
		for i := range rules.Queues {
			s.queues[rules.Queues[i].Name] = rules.Queues[i].Defaults
		}
	}
	given, known := s.queues[name]
	if !known {
		return store.Spec{}, fmt.Errorf("queue %q: %w; add it, or correct the name", name, ErrNoQueue)
	}
	c := s.m.cfg.TaskDefaults
	if s.plan > 0 {
		c = planDefaults(c)
	}
	return s.m.complete(spec, &c, given)
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
