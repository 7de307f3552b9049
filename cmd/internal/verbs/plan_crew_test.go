package verbs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/task"
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
		_, err := fmt.Fprintln(j.Stdout(), strings.Join(j.Args, "+"))
		return err
	}
	split := func(_ context.Context, j *worker.Job) error {
		_, err := fmt.Fprintln(j.Stdout(), strings.Join(j.Args, "\n"))
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
	srv, err := server.New(b.site(), server.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	_, err = b.store.SetQueue(b.t.Context(), task.DefaultQueue, func(q *task.QueueSpec) error { return q.Set("class", "go") })
	if err != nil {
		b.t.Fatal(err)
	}
	w, err := worker.New(b.site(), worker.Options{
		Name: "w", Handlers: map[string]worker.Handler{"echo": echo, "flaky": flaky, "gate": gate, "split": split},
		Settings: worker.Settings{Node: "n", Classes: []string{"go"}, Slots: 2, SpoolDir: b.t.TempDir(), DiskReserve: -1, KillGrace: 100 * time.Millisecond},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.background(srv.Run)
	b.background(w.Run)
	b.t.Cleanup(c.open) // before the daemons end
	return c
}

// site is where daemons work.
func (b *bench) site() *tdf.Site { return storetest.At(b.t, storetest.Where(b.srv), b.ns, nil) }

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
