package manager

import (
	"context"
	"errors"
	"testing"

	"github.com/tdf-go/tdf/internal/redistest"
	"github.com/tdf-go/tdf/internal/wait"
	"github.com/tdf-go/tdf/statemachine"
)

// A handler of a manager that is cut off is told to end in time. What it did counts,
// if nobody else got the task meanwhile.
func TestCutOffInHandler(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	for name, lose := range map[string]func(*redistest.Proxy){
		"refused": (*redistest.Proxy).Down,
		"hanging": (*redistest.Proxy).Hang,
		"deleted": func(*redistest.Proxy) { srv.Do(t, "HDEL", ns+"deleted:handling", "1") }, // noticed at the next renewal
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := srv.Proxy(t)
			host, port, _ := cutAddr(proxy.Addr())
			m := newManager(t, ns+name, quick(), shortLease(), WithSettings("redis.host="+host, "redis.port="+port))
			ended(t, newManager(t, ns+name), 1)
			calls := make(chan error, 10)
			background(t, m, Handlers{Succeeded: func(ctx context.Context, _ *Manager, _ *Task) error {
				lose(proxy)
				<-ctx.Done()
				calls <- context.Cause(ctx)
				return nil
			}})
			if cause := wait.Receive(t, limit, calls, "the handler is not told to end"); !errors.Is(cause, ErrHandlingLost) {
				t.Errorf("the handler was told to end because of %v", cause)
			}
			proxy.Release()
			proxy.Up()
			until(t, newManager(t, ns+name), "the archive", archived(1))
			if len(calls) != 0 {
				t.Errorf("the handler was called %d times more", len(calls))
			}
		})
	}
}

// Run gives back what it was granted and did not handle.
func TestEndGivesBack(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns, quick())
	ended(t, m, 5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := m.Run(ctx, Handlers{Succeeded: func(context.Context, *Manager, *Task) error {
		cancel()
		return nil
	}})
	if err != nil || !has(t, m, func(c Counts) bool { return c[statemachine.Succeeded] == 4 }) {
		t.Errorf("Run = %v, or not 4 tasks left", err)
	}
	checkNothingHeld(t, ns)
}
