package manager

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/store"
)

// submission is one call of Open or OpenAll.
type submission struct {
	m        *Manager
	key      string
	made     bool          // the key is made up
	life     time.Duration // of the requests, 0 for the usual one
	progress func(done int)
	size     int
	batch    []store.Spec
	flight   *flight // the batch before, if it is not opened yet
	opened   []Opened
	queues   map[string]map[string]string // the defaults of each; nil before they are read
	plan     int64                        // that all of them belong to, 0 for none
	needs    int                          // of the batch
	given    []string                     // the tasks of the batch, as they were given
}

// flight is a batch on its way, while the next one is made.
type flight struct {
	batch  []store.Spec
	answer chan openAnswer
}

type openAnswer struct {
	opened []store.Opened
	err    error
}

func (m *Manager) newSubmission(opts []OpenOption) *submission {
	s := &submission{m: m, progress: func(int) {}, size: m.batchSize()}
	for _, opt := range opts {
		opt(s)
	}
	if s.key == "" {
		s.key, s.made = store.NewToken(), true
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
		return &SpecError{Index: s.sent() + len(s.batch), Err: err}
	}
	if s.full(len(spec.Needs)) {
		if err := s.next(ctx); err != nil {
			return err
		}
	}
	complete.Needs = s.resolve(spec.Needs) // after what it may need was sent
	if err := complete.CheckNeeds(len(s.batch), s.plan > 0); err != nil {
		return &SpecError{Index: s.sent() + len(s.batch), Err: err}
	}
	s.batch, s.needs = append(s.batch, complete), s.needs+len(spec.Needs)
	s.given = append(s.given, spec.digest())
	if s.full(0) {
		return s.next(ctx)
	}
	return nil
}

// sent is how many tasks are opened, or on their way.
func (s *submission) sent() int {
	if s.flight == nil {
		return len(s.opened)
	}
	return len(s.opened) + len(s.flight.batch)
}

// next sends the batch after the one before has landed. In a plan it waits for it: what comes next may need it.
func (s *submission) next(ctx context.Context) error {
	o, bad := s.prepare() // while that one is on its way
	if err := s.land(); err != nil {
		return err
	}
	if bad != nil {
		return bad
	}
	s.send(ctx, o)
	if s.plan > 0 {
		return s.land()
	}
	return nil
}

// prepare makes the request that opens the batch, nil if it is empty. Its key is made from the place of its first task, so
// that the same submission repeated makes the same requests.
func (s *submission) prepare() (*store.Opening, error) {
	if len(s.batch) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	return s.m.store.Prepare(store.OpenRequest{
		Key: fmt.Sprintf("%s:%d", s.key, s.sent()), Specs: s.batch, KeyTTL: s.m.cfg.Manager.KeyTTL, Plan: s.plan, Life: s.life,
		Digest: s.digest(),
	})
}

// digest stands for the batch as it was given, without defaults: these may change before a submission is repeated.
func (s *submission) digest() string {
	if s.life == store.LoneRequest {
		return "" // nobody can repeat it with other tasks
	}
	texts := s.given
	s.given = nil
	return store.Digest(append(texts, strconv.FormatInt(s.plan, 10))...)
}

// send opens the batch. The request may be sent several times: its key makes that safe.
func (s *submission) send(ctx context.Context, o *store.Opening) {
	if o == nil {
		return
	}
	f := &flight{s.batch, make(chan openAnswer, 1)}
	go func() {
		opened, err := patiently(ctx, s.m, func() ([]store.Opened, error) { return o.Send(ctx) })
		f.answer <- openAnswer{opened, err}
	}()
	s.flight, s.batch, s.needs = f, nil, 0
}

// land waits for the batch that is on its way.
func (s *submission) land() error {
	f := s.flight
	if f == nil {
		return nil
	}
	s.flight = nil
	answer := <-f.answer
	if errors.Is(answer.err, ErrRequestKey) {
		return fmt.Errorf("%w: %q", ErrRequestKey, s.key)
	}
	if answer.err != nil {
		return answer.err
	}
	if len(answer.opened) != len(f.batch) {
		return fmt.Errorf("%w: %q opened %d tasks where %d are asked for now",
			ErrRequestKey, s.key, len(answer.opened), len(f.batch))
	}
	for i, o := range answer.opened {
		s.m.logOpened(o, &f.batch[i])
		s.opened = append(s.opened, Opened(o))
	}
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
