package redisfaults

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// flock are many idle clients, of which each waits for work, as workers do.
type flock struct {
	mu       sync.Mutex
	answered []time.Time // of each client the last answer
}

func (f *flock) wait(ctx context.Context, n int, st *store.Store) {
	redis := link.New(slog.New(slog.DiscardHandler))
	for ctx.Err() == nil {
		if _, err := st.WaitServer(ctx, 500*time.Millisecond); err != nil {
			timing.Pause(ctx, redis.Failed(err))
			continue
		}
		redis.Answered()
		f.mu.Lock()
		f.answered[n] = time.Now()
		f.mu.Unlock()
	}
}

// since reports whether all have had an answer since then.
func (f *flock) since(then time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(f.answered, func(at time.Time) bool { return at.Before(then) })
}

// C5: many clients come back at once after a restart. They spread themselves, none
// makes more than a few connections, and Redis answers others meanwhile.
func TestManyComeBack(t *testing.T) {
	t.Parallel()
	const clients = 200
	srv := redistest.Start(t, redistest.WithConfig("maxclients", "500"))
	f := &flock{answered: make([]time.Time, clients)}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	where := storetest.Where(srv)
	for n := range clients {
		st, err := store.Dial(where, "flock", conn.WithRetries(-1))
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer func() { _ = st.Close() }()
			f.wait(ctx, n, st)
		})
	}
	wait.Eventually(t, patience, func() bool { return f.since(time.Time{}.Add(1)) }, "not all wait")
	srv.Kill(t)
	hold(t, 2*time.Second)
	srv.Restart(t)
	begun, slowest := time.Now(), time.Duration(0)
	var slow time.Time
	wait.Eventually(t, restartBar, func() bool {
		asked := time.Now()
		srv.Do(t, "PING")
		if took := time.Since(asked); took > slowest {
			slowest, slow = took, asked
		}
		return f.since(begun)
	}, "not all are back")
	t.Logf("recovery of %d clients after a restart: %.1f s (bar %.0f s), slowest PING %d ms",
		clients, time.Since(begun).Seconds(), restartBar.Seconds(), slowest.Milliseconds())
	wait.Within(t, "a PING", slow, slow.Add(slowest), 250*time.Millisecond)
	if made := stat(t, srv, "total_connections_received"); made > 2*clients+int(time.Since(begun)/time.Millisecond) {
		t.Errorf("%d connections were made by %d clients", made, clients)
	}
	if refused := stat(t, srv, "rejected_connections"); refused > 0 {
		t.Errorf("%d connections were refused", refused)
	}
}

// stat reads a counter of INFO.
func stat(t *testing.T, srv *redistest.Server, name string) int {
	t.Helper()
	text, _ := srv.Do(t, "INFO", "stats").(string)
	_, rest, _ := strings.Cut(text, name+":")
	digits, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatalf("%s is %q", name, digits)
	}
	return n
}
