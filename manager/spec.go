package manager

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Check says what is wrong with a spec, defaults of the configuration included,
// without opening it: a *statemachine.FieldError that names the field, or nil.
// Whether the queue is there only opening finds out, and what a StartIn or EndIn comes to.
func (m *Manager) Check(spec task.Spec) error {
	_, err := m.configured.Define(&spec)
	return err
}

func fieldError(field, value, want string) error {
	return &statemachine.FieldError{Field: field, Value: value, Want: want}
}

// queueDefaults are the defaults that queues give to their tasks, as they were
// under some rules.
type queueDefaults struct {
	rules   int64
	byQueue map[string]task.Defaults
}

// untouched is what a manager supposes before it has read them: nobody has
// changed a queue. Where that is wrong, opening says so.
var untouched = &queueDefaults{rules: 1, byQueue: map[string]task.Defaults{task.DefaultQueue: nil}}

// defaultsOf are the defaults of a queue, and the version of the rules that they
// are from. The error matches [task.ErrNoQueue].
func (m *Manager) defaultsOf(ctx context.Context, queue string) (task.Defaults, int64, error) {
	known := m.queueDefaults.Load()
	given, ok := known.byQueue[queue]
	if !ok {
		var err error
		if known, err = m.readDefaults(ctx); err != nil {
			return nil, 0, err
		}
		if given, ok = known.byQueue[queue]; !ok {
			return nil, 0, fmt.Errorf("queue %q: %w; add it, or correct the name", queue, task.ErrNoQueue)
		}
	}
	return given, known.rules, nil
}

// readDefaults reads them anew.
func (m *Manager) readDefaults(ctx context.Context) (*queueDefaults, error) {
	rules, err := retryUntilAvailable(ctx, m, func() (fleet.Rules, error) { return m.store.Rules(ctx, "") })
	if err != nil {
		return nil, err
	}
	read := &queueDefaults{rules: rules.Version, byQueue: map[string]task.Defaults{task.DefaultQueue: nil}}
	for i := range rules.Queues {
		read.byQueue[rules.Queues[i].Name] = rules.Queues[i].Defaults
	}
	m.queueDefaults.Store(read)
	return read, nil
}

// definer has the defaults of tasks of a queue under some rules.
type definer struct {
	task.Definer
	queue string
	rules int64
}

// define completes a task by the defaults of its queue and of the configuration.
func (s *submission) define(ctx context.Context, spec *task.Spec) (task.Definition, int64, error) {
	configured := s.m.defaults
	queue := cmp.Or(spec.Queue, configured.Defaults["queue"], task.DefaultQueue)
	given, rules, err := s.m.defaultsOf(ctx, queue)
	if err != nil {
		return task.Definition{}, 0, err
	}
	if spec, err = s.timed(ctx, spec); err != nil {
		return task.Definition{}, 0, err
	}
	if by := &s.definer; by.queue != queue || by.rules != rules {
		defaults := []task.Defaults{given, configured.Defaults}
		if s.plan > 0 && s.job == nil {
			defaults = []task.Defaults{given, planDefaults, configured.Defaults}
		}
		*by = definer{Definer: task.NewDefiner(defaults...), queue: queue, rules: rules}
	}
	d, err := s.definer.Define(spec)
	if err == nil && s.m.opt.Pin != nil {
		err = s.pin(ctx, &d)
	}
	if err == nil && spec.Stdin != "" {
		err = s.takeStdin(ctx, &d)
	}
	if err == nil && configured.AddRandomStartOffset {
		d.Shuffle()
	}
	return d, rules, err
}

// pin makes the source of a task mean what it held when the submission met it first.
func (s *submission) pin(ctx context.Context, d *task.Definition) error {
	const field = "source"
	source := d.Text(field)
	if source == "" {
		return nil
	}
	pinned, err := s.once(ctx, given{field, source}, s.m.opt.Pin)
	if err != nil {
		return &statemachine.FieldError{Field: field, Value: clean.Source(source), Want: "one that can be used: " + err.Error()}
	}
	if pinned == source {
		return nil
	}
	return d.Set(field, pinned)
}

// given is what the spec of a task says for a field.
type given struct{ field, text string }

// once returns what a text means for all tasks of the submission; find is asked for it where the submission meets it first.
func (s *submission) once(ctx context.Context, g given, find func(context.Context, string) (string, error)) (string, error) {
	means, known := s.means[g]
	if !known {
		var err error
		if means, err = find(ctx, g.text); err != nil {
			return "", err
		}
		if s.means == nil {
			s.means = map[given]string{}
		}
		s.means[g] = means
	}
	return means, nil
}

// timed returns the spec with the times that count from its opening, which is now, on
// Redis' clock. The tasks of a batch are opened at once.
func (s *submission) timed(ctx context.Context, spec *task.Spec) (*task.Spec, error) {
	if spec.StartIn <= 0 && spec.EndIn <= 0 {
		return spec, nil
	}
	if s.now.IsZero() || len(s.batch.tasks) == 0 {
		now, err := retryUntilAvailable(ctx, s.m, func() (time.Time, error) { return s.m.Now(ctx) })
		if err != nil {
			return nil, err
		}
		s.now = now
	}
	timed := spec.From(s.now)
	return &timed, nil
}

// planDefaults are the defaults of tasks in plans (zk-plan: the backoff of workers).
var planDefaults = task.Defaults{"max_fails": "5", "retry_delay": "0.1", "retry_backoff": "1.5", "retry_max_delay": "10"}
