package manager

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

func cutAddr(addr string) (host, port string, err error) { return net.SplitHostPort(addr) }

// What is wrong with the name or an option, each call that changes something says, and
// nothing is changed.
func TestUnusable(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	good := newManager(t, ns)
	id := mustOpen(t, good, 1, spec())
	site := storetest.At(t, storetest.Where(redistest.Shared(t)), ns, nil)
	for want, m := range map[string]*Manager{
		"manager name":  New(site, "a/b", Options{}),
		"RoundDuration": New(site, "m", Options{Settings: Settings{RoundDuration: -1}}),
		"BatchSize":     New(site, "m", Options{Settings: Settings{BatchSize: -5}}),
		"KeyTTL":        New(site, "m", Options{Settings: Settings{KeyTTL: time.Second}}),
		"HandlingLease": New(site, "m", Options{Settings: Settings{HandlingLease: time.Millisecond}}),
	} {
		_, opened := m.Submit(t.Context(), spec())
		_, cancelled := m.Cancel(t.Context(), id, ChangeOptions{})
		_, retried := m.Retry(t.Context(), id, RetryOptions{})
		for what, err := range map[string]error{
			"open": opened, "cancel": cancelled, "retry": retried, "run": m.Run(t.Context(), Handlers{}),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", what, err, want)
			}
		}
	}
	if c, err := good.Count(t.Context()); err != nil || c.Total() != 1 || c.Left() != 1 {
		t.Errorf("%v, %v, want the task as it was", c, err)
	}
}

// BeforeSubmit changes what is opened, and its error refuses it.
func TestBeforeSubmit(t *testing.T) {
	t.Parallel()
	no := errors.New("no tenant")
	site := storetest.At(t, storetest.Where(redistest.Shared(t)), redistest.Namespace(t), nil)
	m := New(site, "m", Options{BeforeSubmit: func(_ context.Context, s *task.Spec) error {
		if s.Input == "" {
			return no
		}
		s.Comment = "of " + s.Input
		return nil
	}})
	given := task.Spec{Program: "p", Input: "acme"}
	sent, err := m.Submit(t.Context(), given)
	if err != nil || given.Comment != "" {
		t.Errorf("%v, the given spec has comment %q", err, given.Comment)
	}
	if opened, err := m.Task(t.Context(), sent.ID); err != nil || opened.Comment != "of acme" {
		t.Errorf("%+v, %v", opened, err)
	}
	all := slices.Values([]task.Spec{{Program: "p", Input: "x"}, {Program: "p"}})
	var refused *SpecError
	if _, err := m.SubmitAll(t.Context(), all); !errors.Is(err, no) || !errors.As(err, &refused) || refused.Index != 1 {
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
	m := newManager(t, ns, quick(), withLogin(user.Name, user.Password))
	mustOpen(t, m, 3, spec())
	worktest.Drain(t, worktest.Open(t, ns), worktest.Echo)
	stop := background(t, m, Handlers{Succeeded: func(context.Context, *task.Task) error { return nil }})
	until(t, m, "the archive", archived(3))
	if p, err := m.WaitAll(t.Context(), nil); err != nil || p.Done != 3 {
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
