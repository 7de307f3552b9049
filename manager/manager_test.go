package manager

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

func cutAddr(addr string) (host, port string, err error) { return net.SplitHostPort(addr) }

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	good := settings(srv.Socket(), redistest.Namespace(t))
	for _, c := range []struct {
		name, manager string
		settings      []string
		unreachable   bool
		say           string
	}{
		{"a name with a slash", "a/b", good, false, "manager name"},
		{"no namespace", "m", good[:1], false, "[tdf]"},
		{"an unknown key", "m", append(good[:2:2], "manager.roundduration=1"), false, "round_duration"},
		{"a value out of range", "m", append(good[:2:2], "manager.batch_size=0"), false, "batch_size"},
		{"nobody there", "m", []string{"redis.host=/nonexistent.sock", "tdf.namespace=x"}, true, "redis-server"},
		{"no such database", "m", append(good[:2:2], "redis.db=999"), true, "db"},
	} {
		m, err := New(t.Context(), c.manager, "", WithSettings(c.settings...))
		if err == nil || m != nil || errors.Is(err, ErrUnreachable) != c.unreachable || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, %v, want an error that says %q", c.name, m, err, c.say)
		}
	}
}

func TestPassword(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithPassword("sesame#1;"))
	with := WithSettings(settings(srv.Socket(), "n")...)
	if _, err := New(t.Context(), "m", "", with); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without password: %v, want ErrUnreachable", err)
	}
	m, err := New(t.Context(), "m", "", with, WithPassword("sesame#1;"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// A45: flushing one namespace leaves all other keys alone.
func TestFlushOneNamespace(t *testing.T) {
	t.Parallel()
	srv, ns := redistest.Shared(t), redistest.Namespace(t)
	one, other := newManager(t, ns), newManager(t, ns+"2")
	mustOpen(t, one, 3, spec())
	mustOpen(t, other, 2, spec())
	srv.Do(t, "SET", ns, "foreign")
	if n, err := one.Flush(t.Context()); err != nil || n < 4 {
		t.Errorf("Flush = %d, %v, want at least the tasks and the counter", n, err)
	}
	if c, err := one.Count(t.Context()); err != nil || c.Total() != 0 {
		t.Errorf("flushed: %v, %v", c, err)
	}
	if c, err := other.Count(t.Context()); err != nil || c.Left() != 2 {
		t.Errorf("the other namespace: %v, %v, want 2 tasks", c, err)
	}
	if got := srv.Do(t, "GET", ns); got != "foreign" {
		t.Errorf("foreign key = %v", got)
	}
}

// A user that may touch nothing but the namespace can do all a manager does.
func TestLimitedUser(t *testing.T) {
	t.Parallel()
	srv, ns := redistest.Shared(t), redistest.Namespace(t)
	user := srv.Limited(t, ns)
	m := newManager(t, ns, quick(), WithSettings("redis.username="+user.Name), WithPassword(user.Password))
	mustOpen(t, m, 3, spec())
	worktest.Drain(t, worktest.Open(t, ns), worktest.Echo)
	stop := background(t, m, Handlers{Succeeded: func(context.Context, *Manager, *task.Task) error { return nil }})
	until(t, m, "the archive", archived(3))
	if p, err := m.Wait(t.Context(), nil, nil); err != nil || p.Done != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := m.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	user.EnsureEmptyACLLog(t)
}
