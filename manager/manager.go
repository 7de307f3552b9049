package manager

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/fleet"
)

// Manager opens, reads and archives the tasks of one namespace. It is safe for
// use by many goroutines; only Run may be under way once.
type Manager struct {
	name    string
	cfg     *config.File
	store   Store
	log     *slog.Logger
	opt     options
	after   func(time.Duration) <-chan time.Time // time.After, or a test's
	running atomic.Bool
	// handling is the lease under which handlers are called; only Run uses it.
	handling *handling
	others   fleet.HandlingWatch // of other managers
	batch    batchSizer          // only Run uses it

	queueDefaults atomic.Pointer[queueDefaults]

	mu      sync.Mutex // guards what follows
	stats   Stats
	retries *handlerRetries
}

// New makes a Manager from a configuration file with the sections [redis] and
// [tdf], and optionally [manager] and [task_defaults]. With an empty file name
// everything comes from options and from the environment (TDF_SECTION_KEY).
//
// It talks to Redis once: the error matches [ErrUnreachable] if it is not
// there, and says what in the configuration to change. name stands in the
// tasks' logs. The caller closes the Manager.
func New(ctx context.Context, name, configFile string, opts ...Option) (*Manager, error) {
	o := options{log: slog.Default()}
	for _, opt := range opts {
		opt(&o)
	}
	if err := config.ValidName("manager", name); err != nil {
		return nil, err
	}
	cfg, err := loadConfig(configFile, &o)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		name: name, cfg: cfg, opt: o, after: time.After,
		log: o.log.With("manager", name), retries: newHandlerRetries(cfg.Manager),
	}
	m.queueDefaults.Store(untouched)
	if err := m.connect(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

func loadConfig(file string, o *options) (*config.File, error) {
	environ := os.Environ()
	if o.password != "" {
		environ = append(environ, "TDF_REDIS_PASSWORD="+o.password)
	}
	return config.Load(file, config.ForManager, config.WithSettings(o.settings...), config.WithEnviron(environ))
}

// connect opens the store and looks whether it is fit.
func (m *Manager) connect(ctx context.Context) error {
	if m.store = m.opt.store; m.store == nil {
		s, err := store.Dial(m.cfg.Redis, m.cfg.TDF.Namespace)
		if err != nil {
			return err
		}
		m.store = s
	}
	info, err := m.store.Check(ctx)
	if err != nil {
		_ = m.Close() // the first error says more
		return err
	}
	for _, warning := range append(m.cfg.Warnings(), info.Warnings...) {
		m.log.Warn(warning)
	}
	m.log.Info("initializing", "namespace", m.Namespace(), "config", m.cfg.Path)
	return nil
}

// Close closes the connections to Redis. Run must have ended.
func (m *Manager) Close() error {
	if m.opt.store != nil {
		return nil // they are the caller's
	}
	return m.store.Close()
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
	// Redis names the life of the server itself: each start of it, and each failover,
	// begins another one. Empty where Redis does not say.
	Redis string
}

// Life asks Redis in which life the data is. If that is the same before and after
// tasks were opened, they are there. If not, some of them may be lost; opened again
// under their request key (see [WithRequestKey]), they are opened as far as they are
// missing. The error matches [ErrUnreachable] also where Redis has lost changes and
// no server has opened a new epoch yet.
func (m *Manager) Life(ctx context.Context) (Life, error) {
	seen, err := m.store.Life(ctx)
	return Life{Epoch: seen.Epoch, Redis: seen.Life}, err
}

// Flush deletes everything in the namespace, and nothing else: all tasks, also
// those being worked on, and their ids. It returns the number of Redis keys.
func (m *Manager) Flush(ctx context.Context) (int64, error) {
	m.log.Warn("flushing the namespace", "namespace", m.Namespace())
	return m.store.Flush(ctx)
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

// Option changes how a Manager is made.
type Option func(*options)

type options struct {
	settings []string
	password string
	log      *slog.Logger
	standby  bool
	force    bool
	store    Store
}

// WithLogger gives the logger; the default is slog.Default().
func WithLogger(log *slog.Logger) Option {
	return func(o *options) { o.log = log }
}

// WithSettings gives values of the configuration, each "section.key=value" as
// in "redis.host=localhost". They win over environment and file, and together
// they may take the place of a file. Secrets are refused here; see
// [WithPassword].
func WithSettings(settings ...string) Option {
	return func(o *options) { o.settings = append(o.settings, settings...) }
}

// WithPassword gives the password of Redis, [redis] password. It wins over the
// file and the environment.
func WithPassword(password string) Option {
	return func(o *options) { o.password = password }
}

// WithStore gives the connections to Redis, for the commands of TDF, which use them too. The caller closes them.
func WithStore(s Store) Option { return func(o *options) { o.store = s } }

// AsStandby makes a manager that only keeps the place of a project's own one: its
// Run refuses with [ErrManagerAlive] while such a one is alive on the
// namespace, unless forced. The command "tdf-manager run" is one.
func AsStandby(force bool) Option {
	return func(o *options) { o.standby, o.force = true, force }
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
		if !errors.Is(err, ErrUnreachable) || ctx.Err() != nil || time.Now().After(giveUp) {
			return answer, err
		}
		if !m.wait(ctx, redis.Failed(err)) {
			return answer, context.Cause(ctx)
		}
	}
}
