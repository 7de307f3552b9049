// Package site has a site of TDF for a benchmark: a private Redis, and servers, workers and managers in the benchmark's process.
package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// Site is a namespace on a Redis of its own.
type Site struct {
	Redis *Redis
	// Store is for the benchmark itself.
	Store   *store.Store
	closers []func() error
	temp    string
}

const namespace = "bench"

// Class is that of the default queue while there is a crew, whose workers serve it: so
// the tasks of the benchmarks need no class of their own.
const Class = "bench"

// New starts a Redis; see [StartRedis] for the settings. The caller closes the site.
func New(ctx context.Context, settings ...string) (*Site, error) {
	srv, err := StartRedis(ctx, settings...)
	if err != nil {
		return nil, err
	}
	s := &Site{Redis: srv}
	if s.temp, err = os.MkdirTemp("", "tdf-bench-crew-"); err == nil {
		s.Store, err = s.Dial(srv.Socket())
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// With calls do with a site that it then closes; see [New].
func With(ctx context.Context, do func(*Site) error, settings ...string) error {
	s, err := New(ctx, settings...)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// Close ends the Redis.
func (s *Site) Close() error {
	var err error
	for _, end := range s.closers {
		err = errors.Join(err, end())
	}
	if s.Store != nil {
		err = errors.Join(err, s.Store.Close())
	}
	s.Redis.Stop()
	return errors.Join(err, os.RemoveAll(s.temp))
}

// Key is a key of the namespace.
func (s *Site) Key(name string) string { return namespace + ":" + name }

// Namespace is where the tasks are.
func (*Site) Namespace() string { return namespace }

// Card is the size of a sorted set of the namespace.
func (s *Site) Card(ctx context.Context, name string) (int64, error) {
	return s.Redis.DB.ZCard(ctx, s.Key(name)).Result()
}

// AwaitCard waits until a sorted set of the namespace has at least n members, and returns how many it has.
func (s *Site) AwaitCard(ctx context.Context, name string, n int64, every time.Duration) (have int64, err error) {
	err = Await(ctx, every, func() (bool, error) {
		have, err = s.Card(ctx, name)
		return have >= n, err
	})
	return have, err
}

// Dial connects to the namespace through a unix socket: that of the Redis, or of a proxy before it.
func (s *Site) Dial(socket string, opts ...conn.Option) (*store.Store, error) {
	where := config.Redis{Host: socket, DialTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute}
	st, err := store.Dial(where, namespace, append([]conn.Option{conn.WithRetries(-1)}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to the Redis of the benchmark: %w", err)
	}
	return st, nil
}

// Open opens n tasks, like each of the specs in turn, in batches.
func (s *Site) Open(ctx context.Context, n int, specs ...task.Spec) error {
	like := make([]task.Definition, len(specs))
	for i := range specs {
		var err error
		if like[i], err = task.Define(&specs[i]); err != nil {
			return err
		}
	}
	for opened := 0; opened < n; {
		batch := make([]task.Definition, min(n-opened, tasks.MaxOpen))
		for i := range batch {
			batch[i] = like[(opened+i)%len(like)]
		}
		if _, err := s.Store.Open(ctx, tasks.OpenRequest{Key: conn.NewToken(), Specs: batch}); err != nil {
			return fmt.Errorf("opening tasks: %w", err)
		}
		opened += len(batch)
	}
	return nil
}

// Manager makes a manager with settings as in manager.batch_size=1000, on connections of its own.
func (s *Site) Manager(ctx context.Context, name string, settings ...string) (*manager.Manager, error) {
	site, err := s.connect(ctx, settings...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return manager.New(site, name, manager.Options{}), nil
}

// Gateway returns what serves workers over HTTP, of which up to waiting wait at a time. It is closed with the Redis.
func (s *Site) Gateway(ctx context.Context, waiting int) (*worker.Gateway, error) {
	site, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	g, err := worker.NewGateway(site, waiting) //nolint:contextcheck // it listens until it is closed
	if err != nil {
		return nil, fmt.Errorf("a gateway: %w", err)
	}
	s.closers = append(s.closers, g.Close)
	return g, nil
}

// connect makes a silent site, which is closed with the Redis.
func (s *Site) connect(ctx context.Context, settings ...string) (*tdf.Site, error) {
	settings = append(slices.Clone(settings), "redis.host="+s.Redis.Socket(), "tdf.namespace="+namespace)
	file, err := config.Load("", config.ForManager, config.WithEnviron(nil), config.WithSettings(settings...))
	if err != nil {
		return nil, err
	}
	internal, err := store.Open(file, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, internal.Store.Close)
	site := &tdf.Site{Internal: internal}
	return site, site.Check(ctx)
}

// Crew is what runs on a site.
type Crew struct {
	ctx     context.Context //nolint:containedctx // it is the life of the crew
	site    *Site
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	closers []func() error
}

// Run calls do with an empty crew, to which it adds, and ends that crew. The context of do ends when one of the crew has
// failed, with the reason as its cause.
func (s *Site) Run(ctx context.Context, do func(ctx context.Context, c *Crew) error) error {
	_, err := s.Store.SetQueue(ctx, task.DefaultQueue, func(q *task.QueueSpec) error { return q.Set("class", Class) })
	if err != nil {
		return fmt.Errorf("setting the class: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c := &Crew{ctx: ctx, site: s, cancel: cancel}
	errs := []error{do(ctx, c)}
	if failed := context.Cause(ctx); !errors.Is(errs[0], failed) {
		errs = append(errs, failed)
	}
	cancel(nil)
	c.running.Wait()
	for _, end := range c.closers {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// Workers adds that many workers like h.
func (c *Crew) Workers(n int, h Hand) error {
	for i := range n {
		h.Name = fmt.Sprintf("worker-%d", i+1)
		if err := c.Worker(h); err != nil {
			return err
		}
	}
	return nil
}

// Servers adds that many servers.
func (c *Crew) Servers(n int) error {
	for i := range n {
		if err := c.Server(fmt.Sprintf("server-%d", i+1), server.Settings{}); err != nil {
			return err
		}
	}
	return nil
}

// Server adds a server.
func (c *Crew) Server(name string, set server.Settings) error {
	site, err := c.site.connect(c.ctx)
	if err != nil {
		return err
	}
	srv, err := server.New(site, server.Options{Name: name, Settings: set})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.Add(srv.Run)
	return nil
}

// Hand says what a worker is like.
type Hand struct {
	Name  string
	Slots int
	// Socket is where it finds Redis; empty for the Redis itself.
	Socket string
	// Pool is how many connections it may have beside those that it keeps; 0 for what is usual.
	Pool     int
	Handlers map[string]worker.Handler
}

// Worker adds a worker.
func (c *Crew) Worker(h Hand) error {
	if h.Socket == "" {
		h.Socket = c.site.Redis.Socket()
	}
	var opts []conn.Option
	if h.Pool > 0 {
		opts = append(opts, conn.WithPoolSize(h.Pool))
	}
	st, err := c.site.Dial(h.Socket, opts...)
	if err != nil {
		return err
	}
	c.closers = append(c.closers, st.Close)
	w, err := worker.New(nil, worker.Options{
		Name: h.Name, Backend: st, Handlers: h.Handlers, Logger: slog.New(slog.DiscardHandler),
		Settings: worker.Settings{
			Node: h.Name, Slots: h.Slots, Classes: []string{Class}, DrainTimeout: time.Minute, DiskReserve: -1,
			SpoolDir: filepath.Join(c.site.temp, h.Name),
		},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	c.Add(w.Run)
	return nil
}

// Archiver adds a manager that archives what has ended.
func (c *Crew) Archiver(name string) error {
	m, err := c.site.Manager(c.ctx, name)
	if err != nil {
		return err
	}
	c.Add(func(ctx context.Context) error { return m.Run(ctx, manager.Handlers{Unhandled: manager.Archive}) })
	return nil
}

// Add runs one of them until all are to end.
func (c *Crew) Add(daemon func(context.Context) error) {
	c.running.Go(func() {
		if err := daemon(c.ctx); err != nil {
			c.cancel(err)
		}
	})
}

// Archive handles n tasks, and returns when they and all others are archived, or one of them is wrong.
func Archive(ctx context.Context, m *manager.Manager, n int, check func(*task.Task) error) error {
	handled := make(map[int64]bool, n)
	var wrong error
	handle := func(_ context.Context, task *task.Task) error {
		handled[task.ID] = true
		if err := check(task); err != nil {
			wrong = err
		}
		return nil
	}
	err := m.Run(ctx, manager.Handlers{
		Succeeded: handle, Unhandled: handle,
		Stop: func(ctx context.Context, _ int) bool {
			if wrong != nil || len(handled) < n {
				return wrong != nil
			}
			counts, err := m.Count(ctx)
			return err == nil && counts.Unarchived() == 0
		},
	})
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("%d of %d tasks handled: %w", len(handled), n, context.Cause(ctx))
	}
	return errors.Join(err, wrong)
}

// AwaitArchived returns when all tasks are archived, without a manager's doing.
func AwaitArchived(ctx context.Context, m *manager.Manager) error {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		counts, err := m.Count(ctx)
		if err != nil || counts.Unarchived() == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d tasks not archived: %w", counts.Unarchived(), counts.Total(), context.Cause(ctx))
		case <-look.C:
		}
	}
}
