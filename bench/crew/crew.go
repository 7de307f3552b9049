// Package crew runs servers, workers and managers in the process of a benchmark, on a private Redis.
package crew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/bench/redisd"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// Site is a namespace on a Redis of its own.
type Site struct {
	Redis *redisd.Server
	// Store is for the benchmark itself.
	Store *store.Store
	temp  string
}

const namespace = "bench"

// NewSite starts a Redis; see [redisd.Start] for the settings. The caller closes the site.
func NewSite(ctx context.Context, settings ...string) (*Site, error) {
	srv, err := redisd.Start(ctx, settings...)
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

// Close ends the Redis.
func (s *Site) Close() error {
	var err error
	if s.Store != nil {
		err = s.Store.Close()
	}
	s.Redis.Stop()
	return errors.Join(err, os.RemoveAll(s.temp))
}

// Key is a key of the namespace.
func (s *Site) Key(name string) string { return namespace + ":" + name }

// Dial connects to the namespace through a unix socket: that of the Redis, or of somebody who passes on what it gets.
func (s *Site) Dial(socket string, opts ...store.Option) (*store.Store, error) {
	st, err := store.Dial(where(socket), namespace, append([]store.Option{store.WithRetries(-1)}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to the Redis of the benchmark: %w", err)
	}
	return st, nil
}

func where(socket string) config.Redis {
	return config.Redis{Host: socket, DialTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute}
}

// Open opens n tasks like a spec, in batches.
func (s *Site) Open(ctx context.Context, n int, spec task.Spec) error {
	d, err := task.Define(&spec)
	if err != nil {
		return err
	}
	specs := slices.Repeat([]task.Definition{d}, min(n, store.MaxOpen))
	for ; n > 0; n -= len(specs) {
		if _, err := s.Store.Open(ctx, store.OpenRequest{Key: store.NewToken(), Specs: specs[:min(n, len(specs))]}); err != nil {
			return fmt.Errorf("opening tasks: %w", err)
		}
	}
	return nil
}

// Crew is what runs on a site.
type Crew struct {
	ctx     context.Context //nolint:containedctx // it is the life of the crew
	site    *Site
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	closers []func() error
}

// Gather makes an empty crew. The context ends when one of the crew has failed, with the reason as its cause, and with
// [Crew.Stop].
func (s *Site) Gather(ctx context.Context) (context.Context, *Crew) {
	c := &Crew{site: s}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c.ctx, c
}

// Server adds a server, with its defaults but for what is set.
func (c *Crew) Server(name string, set ...func(*server.Options)) error {
	st, err := c.site.Dial(c.site.Redis.Socket())
	if err != nil {
		return err
	}
	c.closers = append(c.closers, st.Close)
	o := server.Options{Name: name, Store: st}
	for _, change := range set {
		change(&o)
	}
	srv, err := server.New(o)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.run(srv.Run)
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
	var opts []store.Option
	if h.Pool > 0 {
		opts = append(opts, store.WithPoolSize(h.Pool))
	}
	st, err := c.site.Dial(h.Socket, opts...)
	if err != nil {
		return err
	}
	c.closers = append(c.closers, st.Close)
	o := worker.DefaultOptions()
	o.Name, o.Node, o.Store, o.Slots = h.Name, h.Name, st, h.Slots
	o.Handlers, o.DrainTimeout, o.DiskReserve = h.Handlers, time.Minute, 0
	o.SpoolDir = filepath.Join(c.site.temp, h.Name)
	w, err := worker.New(o)
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	c.run(w.Run)
	return nil
}

// Archiver adds a manager that archives what has ended.
func (c *Crew) Archiver(name string) error {
	m, err := c.site.Manager(c.ctx, name)
	if err != nil {
		return err
	}
	c.closers = append(c.closers, m.Close)
	c.run(func(ctx context.Context) error { return m.Run(ctx, manager.Handlers{}) })
	return nil
}

// run runs one of them until the others are to end too.
func (c *Crew) run(daemon func(context.Context) error) {
	c.running.Go(func() {
		if err := daemon(c.ctx); err != nil {
			c.cancel(err)
		}
	})
}

// Stop ends them all, and returns what one of them has failed with.
func (c *Crew) Stop() error {
	failed := context.Cause(c.ctx)
	c.cancel(nil)
	c.running.Wait()
	errs := []error{failed}
	for _, end := range c.closers {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// ProcessorTime is that of this process.
func ProcessorTime() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage) // it fails only for another who
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
