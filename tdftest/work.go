package tdftest

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/worker"
)

var errBusy = errors.New("tdftest: there is still work to do after a minute")

// patience is how long a handler may take.
const patience = time.Minute

// Work runs a worker with these handlers until there is nothing left to do now: what
// starts later, rests after a failure or has the class of no handler stays open (see
// [worker.Handler]). It runs four tasks at
// a time. A handler that takes more than a minute fails the test.
func Work(tb TB, site *tdf.Site, handlers map[string]worker.Handler) {
	tb.Helper()
	if err := work(site, handlers); err != nil {
		tb.Fatalf("%v", err)
	}
}

func work(site *tdf.Site, handlers map[string]worker.Handler) error {
	st, err := site.Internal.Dial()
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	dir, err := os.MkdirTemp("", "tdftest-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() //nolint:forbidigo // no program runs there
	ctx, idle := context.WithTimeoutCause(context.Background(), patience, errBusy)
	defer idle()
	w, err := worker.New(nil, worker.Options{
		Handlers: handlers, Backend: &backend{Store: st, idle: idle, quiet: -1}, Logger: site.Internal.Log,
		Settings: worker.Settings{Slots: 4, Node: "test", TempDir: dir, ProgramDir: dir, DiskReserve: -1, DrainTimeout: -1},
	})
	if err != nil {
		return err
	}
	if err := w.Run(ctx); err != nil {
		return err
	}
	if context.Cause(ctx) == errBusy { //nolint:errorlint // it is that very value
		return errBusy
	}
	return nil
}

// backend is the site of a worker that ends when it is idle. In place of waiting for work
// it looks whether there may be some.
type backend struct {
	*store.Store

	idle   func()
	claims atomic.Int64
	quiet  int64 // how many claims there were when nothing was to be done, and -1
}

// Claim counts what is claimed.
func (b *backend) Claim(ctx context.Context, req worker.ClaimRequest) (worker.ClaimReply, error) {
	reply, err := b.Store.Claim(ctx, req)
	b.claims.Add(int64(len(reply.Tasks)))
	return reply, err
}

// Turn counts what is claimed.
func (b *backend) Turn(ctx context.Context, commits []worker.Commit, next *worker.ClaimRequest) worker.Turn {
	t := b.Store.Turn(ctx, commits, next)
	b.claims.Add(int64(len(t.Reply.Tasks)))
	return t
}

// WaitAndClaim ends the work when it comes for the second time while nothing is to be done
// and nothing was claimed in between: what the server opened last has been looked for.
func (b *backend) WaitAndClaim(ctx context.Context, _ worker.WaitFor, _ time.Duration, req worker.ClaimRequest) (w worker.Waited) {
	claims := b.claims.Load()
	switch quiet, err := b.settled(ctx); {
	case err != nil:
		w.Err = err
	case !quiet:
		b.quiet = -1
	case b.quiet == claims:
		b.idle()
	default:
		b.quiet = claims
	}
	select {
	case <-ctx.Done():
		w.Reply.Stale = true
	case <-time.After(pace / 5):
		w.Reply, w.Claimed = b.Claim(ctx, req)
	}
	return w
}

// settled reports whether nothing runs, and the server has nothing to do.
func (b *backend) settled(ctx context.Context) (bool, error) {
	counts, err := b.Count(ctx)
	if err != nil || counts[statemachine.Running]+counts[statemachine.Executed] > 0 {
		return false, err
	}
	due, err := b.Due(ctx, 1)
	if err != nil || len(due.Tasks) > 0 {
		return false, err
	}
	work, err := b.DueWork(ctx, 0, 1)
	return len(work) == 0, err
}
