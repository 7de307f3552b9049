package manager

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/task"
)

// Manager opens, reads and archives the tasks of one namespace. It is safe for
// use by many goroutines; only Run may be under way once.
type Manager struct {
	name string
	// unusable is what is wrong with the name, nil normally.
	unusable error
	defaults config.TaskDefaults
	// configured defines tasks by those defaults alone.
	configured task.Definer
	store      namespace
	log        *slog.Logger
	opt        Options
	after      func(time.Duration) <-chan time.Time // time.After, or a test's
	running    atomic.Bool
	// handling is the lease under which handlers are called; only Run uses it.
	handling *handling
	others   fleet.HandlingWatch // of other managers
	batch    batchSizer          // only Run uses it
	picks    picks               // only Run uses them

	queueDefaults atomic.Pointer[queueDefaults]

	mu      sync.Mutex // guards what follows
	stats   Stats
	retries *handlerRetries
}

// Options say how a Manager works. The zero value has the defaults.
type Options struct {
	// Logger gets the manager's log. Default: that of the site.
	Logger *slog.Logger
	Settings
	// Standby makes a manager that only keeps the place of a project's own one: its Run
	// refuses with [ErrManagerAlive] while such a one is alive in the namespace, unless
	// Force is set. The command "tdf-manager run" is one.
	Standby, Force bool
	// BeforeSubmit may change each task that is submitted, or refuse it: tenants, traces,
	// conventions of a project. It is called before the defaults are filled in. Its error
	// is that of the submission, and nothing is opened.
	BeforeSubmit func(ctx context.Context, spec *task.Spec) error
	// Pin returns a source with the hash of what it holds now, as fetch.Fetcher.Pin does. It is called once
	// in a submission for each source without one, so that all tasks of the submission
	// run the same version of a program. Its error is that of the submission. Tasks that a
	// submission repeated under its request key finds opened keep theirs. Default: nil, which
	// leaves it to each worker what it finds at the source.
	Pin func(ctx context.Context, source string) (pinned string, err error)
}

// Settings are what the section [manager] of a configuration says. A zero field takes
// the value of the site's configuration, or else its default.
type Settings struct {
	// RoundDuration is the longest time between two passes of Run, which otherwise reacts
	// at once. Default 1.3 s, at least 1 ms.
	RoundDuration time.Duration
	// BatchSize is how many tasks are opened or archived in one call. Default 100.
	BatchSize int
	// KeyTTL is how long a task has its Spec.Key from when it was opened, unless it lives longer. Default 7 days, at least 1 min.
	KeyTTL time.Duration
	// HandlerBackoff is the pause before a task is given again to a handler that has
	// returned an error. It doubles each time, up to HandlerBackoffMax. Default 1 s, 1 min.
	HandlerBackoff, HandlerBackoffMax time.Duration
	// HandlingLease is how long a manager may be silent before another one gets the tasks
	// of its handlers. Default 15 s, at least 1 s.
	HandlingLease time.Duration
}

func (s *Settings) check() error {
	switch {
	case s.RoundDuration < time.Millisecond:
		return fieldError("RoundDuration", s.RoundDuration.String(), "at least 1ms; 0 for the default")
	case s.BatchSize < 1:
		return fieldError("BatchSize", strconv.Itoa(s.BatchSize), "at least 1; 0 for the default")
	case s.KeyTTL < time.Minute:
		return fieldError("KeyTTL", s.KeyTTL.String(), "at least 1m; 0 for the default")
	case s.HandlingLease < time.Second:
		return fieldError("HandlingLease", s.HandlingLease.String(), "at least 1s; 0 for the default")
	}
	return nil
}

// New makes a Manager, which works on the connections of the site. name stands in the
// logs of tasks; it has 1 to 128 printable characters without a slash. What is wrong with
// name or options, Run and every call that changes something return.
func New(site *tdf.Site, name string, o Options) *Manager {
	file := site.Internal.File
	o.Settings = Settings(config.Complete(config.Manager(o.Settings), file.Manager))
	m := &Manager{
		name: name, opt: o, defaults: file.TaskDefaults, store: site.Internal.Store, after: time.After,
		log: cmp.Or(o.Logger, site.Internal.Log).With("manager", name), retries: newHandlerRetries(o.Settings),
		unusable: errors.Join(config.ValidName("manager", name), o.check()),
	}
	m.configured = task.NewDefiner(m.defaults.Defaults)
	m.queueDefaults.Store(untouched)
	return m
}

// Name is the name given to [New].
func (m *Manager) Name() string { return m.name }

// Namespace is where the tasks are, [tdf] namespace.
func (m *Manager) Namespace() string { return m.store.Namespace() }

// Now is the time of Redis, the only clock of TDF: what StartAfter and
// EndBefore are compared with.
func (m *Manager) Now(ctx context.Context) (time.Time, error) {
	now, err := m.store.RedisTime(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMicro(int64(now)), nil
}

// Life is one life of the data in Redis. Two of them are compared with ==.
type Life struct {
	// Epoch is raised where Redis has lost changes that it had acknowledged, and by a
	// flush.
	Epoch int64
	// redis names the life of the server itself: each start of it, and each failover,
	// begins another one. Empty where Redis does not say.
	redis string
}

// Life asks Redis in which life the data is. If that is the same before and after
// tasks were opened, they are there. If not, some of them may be lost; opened again
// under their request key (see [WithRequestKey]), they are opened as far as they are
// missing. The error matches [task.ErrUnreachable] also where Redis has lost changes and
// no server has opened a new epoch yet.
func (m *Manager) Life(ctx context.Context) (Life, error) {
	seen, err := m.store.Life(ctx)
	return Life{Epoch: seen.Epoch, redis: seen.Life}, err
}

// Flush deletes everything in the namespace but the log of changes, and nothing else: all tasks, also
// those being worked on, and their ids. It returns the number of Redis keys.
func (m *Manager) Flush(ctx context.Context) (int64, error) {
	m.log.Warn("flushing the namespace", "namespace", m.Namespace())
	n, err := m.store.Flush(ctx)
	if err == nil {
		err = m.note(ctx, ChangeOptions{}, "flush", []string{m.Namespace()}, nil)
	}
	return n, err
}

// wait sleeps for d; it reports false if ctx ended first.
func (m *Manager) wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-m.after(d):
		return true
	}
}

// patience is how long a call that changes something goes on trying while Redis
// is away.
const patience = 10 * time.Second

// retryUntilAvailable makes a call that may be made again, until it is answered.
func retryUntilAvailable[T any](ctx context.Context, m *Manager, call func() (T, error)) (T, error) {
	giveUp := time.Now().Add(patience)
	redis := link.New(m.log)
	for {
		answer, err := call()
		if err == nil {
			redis.Answered()
			return answer, nil
		}
		if !errors.Is(err, task.ErrUnreachable) || ctx.Err() != nil || time.Now().After(giveUp) {
			return answer, err
		}
		if !m.wait(ctx, redis.Failed(err)) {
			return answer, context.Cause(ctx)
		}
	}
}
