// Package crewtest runs a server and workers inside a test, as the examples'
// readers run tdf-server and tdf-worker, with the examples' own configuration
// files, on a real Redis.
//
// The package is imported from _test.go files only.
package crewtest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/worker"
)

// Crew says what to run.
type Crew struct {
	// Dir holds server.cfg and worker.cfg, and is what relative rsync: sources
	// are relative to.
	Dir string
	// Place is where the namespace is.
	Place Place
	// Workers are the names of the workers; each has a program directory of its own.
	Workers []string
	// Handlers are Go functions that the workers know, beside programs.
	Handlers map[string]worker.Handler
}

// Start runs the crew until the test ends. A daemon that ends before that, or
// with an error, fails the test.
func Start(tb testing.TB, c Crew) {
	tb.Helper()
	daemons := map[string]func(context.Context) error{"server": c.newServer(tb).Run}
	for _, name := range c.Workers {
		daemons[name] = c.newWorker(tb, name).Run
	}
	// All are stopped at once: one that waits for work notices it after up to a second.
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var all sync.WaitGroup
	for name, run := range daemons {
		all.Go(func() {
			if err := run(ctx); err != nil || ctx.Err() == nil {
				tb.Errorf("%s has ended: %v", name, err)
			}
		})
	}
	tb.Cleanup(func() {
		cancel()
		all.Wait()
	})
}

// load reads one of the crew's files, with the place put in.
func (c Crew) load(tb testing.TB, file string, kind config.Kind) (*tdf.Site, *config.File) {
	tb.Helper()
	cfg, err := config.Load(c.Place.Config(tb, filepath.Join(c.Dir, file)), kind, config.WithEnviron(nil))
	if err != nil {
		tb.Fatal(err)
	}
	internal, err := store.Open(cfg, logger(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = internal.Store.Close() })
	return &tdf.Site{Internal: internal}, cfg
}

func (c Crew) newServer(tb testing.TB) *server.Server {
	tb.Helper()
	site, _ := c.load(tb, "server.cfg", config.ForServer)
	s, err := server.New(site, server.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func (c Crew) newWorker(tb testing.TB, name string) *worker.Worker {
	tb.Helper()
	site, cfg := c.load(tb, "worker.cfg", config.ForWorker)
	own := tb.TempDir()
	fo := fetch.DefaultOptions()
	fo.Dir, fo.WorkDir, fo.Worker = filepath.Join(own, "programs"), c.Dir, name
	programs, err := fetch.New(fo)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = programs.Close() })
	w, err := worker.New(site, worker.Options{
		Name: name, Handlers: c.Handlers, RunPrograms: true, Programs: programs,
		Settings: worker.Settings{
			ProgramDir: own, SpoolDir: filepath.Join(own, "spool"),
			OutputFile: inside(own, cfg.Worker.OutputFile), ErrorFile: inside(own, cfg.Worker.ErrorFile),
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// inside keeps files out of the source tree; an empty name means no file.
func inside(dir, name string) string {
	if name == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

func logger(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// Place is a namespace on the shared Redis of the test binary.
type Place struct {
	// Host is the path of the server's unix socket.
	Host string
	// Namespace is used by this test alone.
	Namespace string
}

// NewPlace returns a namespace nobody else uses; see [redistest.Shared].
func NewPlace(tb testing.TB) Place {
	tb.Helper()
	return Place{Host: redistest.Shared(tb).Socket(), Namespace: redistest.Namespace(tb)}
}

var (
	hostLine      = regexp.MustCompile(`(?m)^host=.*$`)
	namespaceLine = regexp.MustCompile(`(?m)^namespace=.*$`)
)

// Site is a site at the place, without a configuration file.
func (p Place) Site(tb testing.TB) *tdf.Site {
	tb.Helper()
	site, err := tdf.Connect(tb.Context(), tdf.Config{Addr: p.Host, Namespace: p.Namespace, Logger: logger(tb)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = site.Close() })
	return site
}

// Config copies a .cfg file, with host and namespace replaced, and returns the
// copy's name.
func (p Place) Config(tb testing.TB, file string) string {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if !hostLine.Match(text) || !namespaceLine.Match(text) {
		tb.Fatalf("%s: no line starts with host= or namespace=", file)
	}
	text = hostLine.ReplaceAllLiteral(text, fmt.Append(nil, "host=", p.Host))
	text = namespaceLine.ReplaceAllLiteral(text, fmt.Append(nil, "namespace=", p.Namespace))
	out := filepath.Join(tb.TempDir(), filepath.Base(file))
	if err := os.WriteFile(out, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	return out
}
