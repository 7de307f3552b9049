// Package tdf is the way into a site: a namespace on a Redis, which managers, workers
// and servers share. [Connect] gives a [Site], from which everything else is made:
//
//	site, err := tdf.Connect(ctx, tdf.Config{Addr: "localhost:6379", Namespace: "hello"})
//	if err != nil {
//		return err
//	}
//	defer site.Close()
//	m := manager.New(site, "hello", manager.Options{})
//
// The packages: task has the nouns; manager opens tasks and reacts to their results;
// worker executes them; server settles them; fn makes Go functions tasks, plan makes
// graphs of tasks, series runs them again and again; tdftest has a whole site for tests, without Redis.
package tdf

import (
	"context"
	"errors"

	"github.com/tdf-go/tdf/internal/store"
)

// Site is a namespace that programs work on. It is safe for use by many goroutines; any
// number of managers, workers and servers may be made from one.
type Site struct {
	// Internal is for the packages of TDF.
	Internal store.Site
}

// Connect checks a configuration, and that its Redis is there and can be trusted. The
// error matches [task.ErrUnreachable], [task.ErrUnfit] or [task.ErrProtocol], or names the
// field that is wrong, and says what to change. The caller closes the Site.
func Connect(ctx context.Context, c Config) (*Site, error) {
	file, err := c.complete()
	if err != nil {
		return nil, err
	}
	internal, err := store.Open(file, c.Logger)
	if err != nil {
		return nil, err
	}
	site := &Site{Internal: internal}
	if err := site.Check(ctx); err != nil {
		return nil, errors.Join(err, site.Close())
	}
	return site, nil
}

// Check checks Redis as [Connect] does, and logs doubtful settings of Redis and of the
// site.
func (s *Site) Check(ctx context.Context) error {
	info, err := s.Internal.Store.Check(ctx)
	if err != nil {
		return err
	}
	for _, warning := range append(s.Internal.File.Warnings(), info.Warnings...) {
		s.Internal.Log.Warn(warning)
	}
	return nil
}

// Namespace returns the namespace of the configuration.
func (s *Site) Namespace() string { return s.Internal.Store.Namespace() }

// Close closes the connections. What was made from the site must have ended.
func (s *Site) Close() error { return s.Internal.Store.Close() }
