package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/task"
)

// SubmitOption changes how tasks are submitted.
type SubmitOption func(*submission)

// WithRequestKey names the submission for 24 hours: given again, with the same
// tasks, it returns the ids of the first time and opens nothing twice, also
// where the first time was cut short. Other tasks, another order or another plan
// are an error that matches [task.ErrRequestKey], and none of them is opened;
// StartAfter and EndBefore may differ, since they are often counted from now.
// Without it, or with an empty one, a key is made up, which covers replies lost
// on the way.
func WithRequestKey(key string) SubmitOption {
	return func(s *submission) { s.key = key }
}

// WithProgress calls f after each batch with the number of tasks opened so far.
func WithProgress(f func(done int)) SubmitOption {
	return func(s *submission) { s.progress = f }
}

// Submit opens one task, or finds the one that has its Spec.Key. While Redis is
// away it tries again for some seconds; then the error matches [task.ErrUnreachable]. It
// matches [task.ErrNoQueue] if the task's queue is not there.
func (m *Manager) Submit(ctx context.Context, spec task.Spec, opts ...SubmitOption) (task.Opened, error) {
	sub := m.newSubmission(opts)
	if sub.made {
		sub.life = tasks.LoneRequest // an error does not tell the key
	}
	err := sub.put(ctx, &spec)
	if err == nil {
		err = sub.next(ctx)
	}
	if err == nil {
		err = sub.await(ctx)
	}
	if sub.job != nil {
		err = sub.endJob(ctx, err)
	}
	if err != nil {
		return task.Opened{}, fmt.Errorf("submit: %w", err)
	}
	return sub.opened[0], nil
}

// SubmitAll opens many tasks in batches of [manager] batch_size and returns them in
// the order of the specs. It stops at the first error, a *[SubmissionError], and returns
// what was opened before; a task that cannot be opened is a *[SpecError] in it. Use
// [Manager.Check] beforehand where nothing shall be opened then.
func (m *Manager) SubmitAll(ctx context.Context, specs iter.Seq[task.Spec], opts ...SubmitOption) ([]task.Opened, error) {
	sub := m.newSubmission(opts)
	var err error
	for spec := range specs {
		if err = sub.add(ctx, &spec); err != nil {
			break
		}
	}
	if err == nil {
		err = sub.next(ctx)
	}
	if earlier := sub.await(ctx); earlier != nil {
		err = earlier
	}
	if sub.job != nil {
		err = sub.endJob(ctx, err)
	}
	if err != nil {
		return sub.opened, sub.failed(err)
	}
	return sub.opened, nil
}

// openBatch may send the request several times: its key makes that safe.
func (m *Manager) openBatch(ctx context.Context, req tasks.OpenRequest) ([]task.Opened, error) {
	return retryUntilAvailable(ctx, m, func() ([]task.Opened, error) { return m.store.OpenAll(ctx, req) })
}

// logOpened leaves the input out, which may hold secrets.
func (m *Manager) logOpened(ctx context.Context, opened []task.Opened, specs []task.Spec) {
	if !m.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	for i, o := range opened {
		what := "opened task"
		if o.Existing {
			what = "task was opened before"
		}
		m.log.Debug(what, "task", o.ID, "program", specs[i].Program, "key", specs[i].Key)
	}
}

type submission struct {
	m        *Manager
	key      string
	made     bool          // the key is made up
	life     time.Duration // of the requests, 0 for the usual one
	progress func(done int)
	size     int
	batch    batch
	inflight *inflight // the batch before, if it is not opened yet
	opened   []task.Opened
	now      time.Time        // of Redis, when a task of the batch with a StartIn or EndIn was defined
	plan     task.PlanID      // that all of them belong to, 0 for none
	job      *job             // that they become, nil for none; then plan is its number
	definer  definer          // of the task before
	means    map[given]string // sources with their pins, and what is kept for stdin
}

type batch struct {
	specs []task.Spec
	tasks []task.Definition // by the rules of queues of one version
	rules int64
	needs int
}

// inflight is a batch on its way, while the next one is made.
type inflight struct {
	batch batch
	place int           // in the submission, of its first task
	over  chan struct{} // closed when there is an answer, which follows
	tasks []task.Opened
	err   error
}

func (m *Manager) newSubmission(opts []SubmitOption) *submission {
	s := &submission{m: m, progress: func(int) {}, size: m.batchSize()}
	for _, opt := range opts {
		opt(s)
	}
	if s.key == "" {
		s.key, s.made = conn.NewToken(), true
	}
	return s
}

// batchSize is what one script may take.
func (m *Manager) batchSize() int {
	return min(m.opt.BatchSize, tasks.MaxOpen, tasks.MaxMoves)
}

func (s *submission) failed(err error) error {
	return &SubmissionError{Opened: len(s.opened), RequestKey: s.key, Err: err}
}

func (s *submission) add(ctx context.Context, spec *task.Spec) error {
	if s.full(len(spec.Needs)) {
		if err := s.next(ctx); err != nil {
			return err
		}
	}
	if err := s.put(ctx, spec); err != nil {
		return specError(ctx, s.sent()+len(s.batch.tasks), err)
	}
	if s.full(0) {
		return s.next(ctx)
	}
	return nil
}

// specError is an error of defining a task: about that one, unless Redis is away.
func specError(ctx context.Context, index int, err error) error {
	if errors.Is(err, task.ErrUnreachable) || ctx.Err() != nil {
		return err
	}
	return &SpecError{Index: index, Err: err}
}

// put adds a task to the batch, after what it may need was sent.
func (s *submission) put(ctx context.Context, spec *task.Spec) error {
	if s.m.unusable != nil {
		return s.m.unusable
	}
	if before := s.m.opt.BeforeSubmit; before != nil {
		if err := before(ctx, spec); err != nil {
			return err
		}
	}
	d, rules, err := s.define(ctx, spec)
	if err != nil {
		return err
	}
	d.Needs = s.resolve(spec.Needs)
	b := &s.batch
	if err := tasks.CheckNeeds(&d, len(b.tasks), s.plan > 0 && s.job == nil); err != nil {
		return err
	}
	if len(b.tasks) == 0 {
		b.rules = rules
	} // else the script finds out that others are in force
	b.specs, b.tasks, b.needs = append(b.specs, *spec), append(b.tasks, d), b.needs+len(spec.Needs)
	return nil
}

func (s *submission) sent() int {
	if s.inflight == nil {
		return len(s.opened)
	}
	return len(s.opened) + len(s.inflight.batch.tasks)
}

// next sends the batch once the one before was opened. In a plan it waits for it: what comes next may need it.
func (s *submission) next(ctx context.Context) error {
	if len(s.batch.tasks) == 0 {
		return s.await(ctx)
	}
	if s.job != nil && s.plan == 0 {
		if err := s.makeJob(ctx); err != nil {
			return err
		}
	}
	place := s.sent()
	o, bad := s.prepare(&s.batch, place) // while that one is on its way
	if err := s.await(ctx); err != nil {
		return err
	}
	if bad != nil {
		return bad
	}
	s.send(ctx, o, place)
	if s.plan > 0 && (s.job == nil || plans.Gated(&s.job.PlanSpec)) {
		return s.await(ctx)
	}
	return nil
}

// prepare makes the request that opens a batch. Its key is made from the place of its first task, so
// that the same submission repeated makes the same requests.
func (s *submission) prepare(b *batch, place int) (*tasks.Opening, error) {
	return s.m.store.Prepare(tasks.OpenRequest{
		Key: fmt.Sprintf("%s:%d", s.key, place), Specs: b.tasks, KeyTTL: s.m.opt.KeyTTL, Life: s.life, Digest: s.digest(b), Rules: b.rules,
		Plan: s.plan, Job: s.job != nil && !plans.Gated(&s.job.PlanSpec),
	})
}

// digest stands for a batch as it was given, without defaults: these may change before a submission is repeated.
func (s *submission) digest(b *batch) string {
	if s.life == tasks.LoneRequest {
		return "" // nobody can repeat it with other tasks
	}
	texts := make([]string, 0, len(b.specs)+1)
	for i := range b.specs {
		texts = append(texts, conn.Digest(b.specs[i].Texts()...))
	}
	return conn.Digest(append(texts, strconv.FormatInt(int64(s.plan), 10))...)
}

// send opens the batch. The request may be sent several times: its key makes that safe.
func (s *submission) send(ctx context.Context, o *tasks.Opening, place int) {
	f := &inflight{batch: s.batch, place: place, over: make(chan struct{})}
	go func() {
		defer close(f.over)
		f.tasks, f.err = retryUntilAvailable(ctx, s.m, func() ([]task.Opened, error) { return o.Send(ctx) })
	}()
	s.inflight, s.batch = f, batch{}
}

// await waits for the batch that is on its way. It is defined and sent anew as often as the rules of queues have changed.
func (s *submission) await(ctx context.Context) error {
	f := s.inflight
	if f == nil {
		return nil
	}
	s.inflight = nil
	<-f.over
	for errors.Is(f.err, conn.ErrRules) {
		f.tasks, f.err = s.resend(ctx, f)
	}
	switch {
	case errors.Is(f.err, task.ErrRequestKey):
		return fmt.Errorf("%w: %q", task.ErrRequestKey, s.key)
	case errors.Is(f.err, task.ErrKeyTaken):
		return f.keyTaken()
	case f.err != nil:
		return f.err
	case len(f.tasks) != len(f.batch.tasks):
		return fmt.Errorf("%w: key %q was first used for %d tasks, this request has %d",
			task.ErrRequestKey, s.key, len(f.tasks), len(f.batch.tasks))
	}
	s.opened = append(s.opened, f.tasks...)
	s.m.logOpened(ctx, f.tasks, f.batch.specs)
	s.progress(len(s.opened))
	return nil
}

// keyTaken says which task was refused.
func (f *inflight) keyTaken() error {
	taken, _ := errors.AsType[*task.KeyTakenError](f.err)
	i := slices.IndexFunc(f.batch.tasks, func(d task.Definition) bool { return d.Text("key") == taken.Key })
	return &SpecError{Index: f.place + i, Err: taken}
}

// resend opens a batch by the rules of queues that are in force now.
func (s *submission) resend(ctx context.Context, f *inflight) ([]task.Opened, error) {
	read, err := s.m.readDefaults(ctx)
	if err != nil {
		return nil, err
	}
	b := &f.batch
	b.rules = read.rules
	for i := range b.tasks {
		d, _, err := s.define(ctx, &b.specs[i])
		if err != nil {
			return nil, &SpecError{Index: f.place + i, Err: err}
		}
		d.Needs = b.tasks[i].Needs
		b.tasks[i] = d
	}
	o, err := s.prepare(b, f.place)
	if err != nil {
		return nil, err
	}
	return retryUntilAvailable(ctx, s.m, func() ([]task.Opened, error) { return o.Send(ctx) })
}

// Digest is a short text that stands for tasks and later steps, and their order. StartAfter and EndBefore do not count: they are
// often counted from now. Give it as PlanSpec.Contents where a plan is made of them.
func Digest(specs []task.Spec, later []LaterStep) string {
	texts := make([]string, 0, len(specs)+len(later))
	for i := range specs {
		texts = append(texts, conn.Digest(specs[i].Texts()...))
	}
	for i := range later {
		step := &later[i]
		texts = append(texts, "step", step.Name, step.Lines, strconv.Itoa(step.Most), strconv.Itoa(len(step.Needs)))
		for _, n := range step.Needs {
			texts = append(texts, n.Step, string(cmp.Or(n.On, task.NeedsSuccess)))
		}
		texts = append(texts, Digest(step.Specs, nil))
	}
	return conn.Digest(texts...)
}
