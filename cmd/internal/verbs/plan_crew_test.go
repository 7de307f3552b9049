package verbs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/worker"
)

// planCrew is a server and a worker whose programs are Go functions: echo gives its
// words joined by +, and so do flaky once it was mended, and gate once it was opened; split gives a line each.
type planCrew struct {
	mended atomic.Bool
	open   func()
}

func (b *bench) planCrew() *planCrew {
	b.t.Helper()
	opened := make(chan struct{})
	c := &planCrew{open: sync.OnceFunc(func() { close(opened) })}
	echo := func(_ context.Context, j *worker.Job) error {
		_, err := fmt.Fprintln(j.Stdout, strings.Join(j.Args, "+"))
		return err
	}
	split := func(_ context.Context, j *worker.Job) error {
		_, err := fmt.Fprintln(j.Stdout, strings.Join(j.Args, "\n"))
		return err
	}
	flaky := func(ctx context.Context, j *worker.Job) error {
		if !c.mended.Load() {
			return errors.New("it broke")
		}
		return echo(ctx, j)
	}
	gate := func(ctx context.Context, j *worker.Job) error {
		select {
		case <-opened:
			return echo(ctx, j)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	srv, err := server.New(server.Options{Name: "server", Store: b.dial()})
	if err != nil {
		b.t.Fatal(err)
	}
	o := worker.DefaultOptions()
	o.Name, o.Node, o.Backend, o.SpoolDir = "w", "n", b.dial(), b.t.TempDir()
	o.Slots, o.DiskReserve, o.KillGrace = 2, 0, 100*time.Millisecond
	o.Handlers = map[string]worker.Handler{"echo": echo, "flaky": flaky, "gate": gate, "split": split}
	w, err := worker.New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.background(srv.Run)
	b.background(w.Run)
	b.t.Cleanup(c.open) // before the daemons end
	return c
}

// dial is a store for a daemon.
func (b *bench) dial() *store.Store {
	b.t.Helper()
	s, err := store.Dial(storetest.Where(b.srv), b.ns, conn.WithRetries(-1))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = s.Close() })
	return s
}

// background runs a daemon until the test ends.
func (b *bench) background(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := wait.Receive(b.t, limit, done, "a daemon does not end"); err != nil {
			b.t.Error(err)
		}
	})
}
