package manager

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

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
	return retryUntilAvailable(ctx, m, func() ([]store.Opened, error) { return m.store.OpenAll(ctx, req) })
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

// submission is one call of Open or OpenAll.
type submission struct {
	m        *Manager
	key      string
	made     bool          // the key is made up
	life     time.Duration // of the requests, 0 for the usual one
	progress func(done int)
	size     int
	batch    []store.Spec
	flight   *inflight // the batch before, if it is not opened yet
	opened   []Opened
	queues   map[string]map[string]string // the defaults of each; nil before they are read
	plan     int64                        // that all of them belong to, 0 for none
	needs    int                          // of the batch
	given    []string                     // the tasks of the batch, as they were given
}

// inflight is a batch on its way, while the next one is made.
type inflight struct {
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
	f := &inflight{s.batch, make(chan openAnswer, 1)}
	go func() {
		opened, err := retryUntilAvailable(ctx, s.m, func() ([]store.Opened, error) { return o.Send(ctx) })
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
		return fmt.Errorf("%w: key %q was first used for %d tasks, this request has %d",
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
		rules, err := retryUntilAvailable(ctx, s.m, func() (store.Rules, error) { return s.m.store.Rules(ctx, "") })
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

// Digest is a short text that stands for tasks and later steps, and their order. StartAfter and EndBefore do not count: they are
// often counted from now. Give it as PlanSpec.Contents where a plan is made of them.
func Digest(specs []Spec, later []LaterStep) string {
	texts := make([]string, 0, len(specs)+len(later))
	for i := range specs {
		texts = append(texts, specs[i].digest())
	}
	for i := range later {
		step := &later[i]
		texts = append(texts, "step", step.Name, step.Lines, strconv.Itoa(step.Most), strconv.Itoa(len(step.Needs)))
		for _, n := range step.Needs {
			texts = append(texts, n.Step, orText(string(n.On), string(NeedsSuccess)))
		}
		texts = append(texts, Digest(step.Specs, nil))
	}
	return store.Digest(texts...)
}

// digest stands for the task as it was given. What was left to defaults differs from everything that can be given.
func (s *Spec) digest() string {
	const left = "\x00"
	argv := left
	if s.Argv != nil {
		argv = store.Digest(s.Argv...)
	}
	texts := append(make([]string, 0, 26+3*len(s.Needs)),
		s.Program, s.Source, s.Input, argv, durationText(s.Timeout, left),
		limitText(s.MaxFails, left), limitText(s.MaxTimeouts, left), limitText(s.MaxLosses, left), limitText(s.MaxFaults, left),
		s.FailOn, s.Queue, s.Env, labelsText(s.Labels, left), resourcesText(s.Resources, left), intText(s.Priority, left),
		delayText(s.RetryDelay, left), durationText(s.RetryMaxDelay, left), floatText(s.RetryBackoff, left), floatText(s.RetryJitter, left),
		codesText(s.RetryExitCodes, left), codesText(s.FatalExitCodes, left), s.Charge, s.Hold, s.Key, s.Args, s.Step,
	)
	for _, n := range s.Needs {
		texts = append(texts, strconv.FormatInt(n.Task, 10), strconv.Itoa(n.Index), orText(string(n.On), string(NeedsSuccess)))
	}
	return store.Digest(texts...)
}
