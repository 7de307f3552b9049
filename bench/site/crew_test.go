package site

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSite(t *testing.T) *Site {
	t.Helper()
	s, err := New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// hand does nothing at all with tasks.
var hand = Hand{Slots: 2, Handlers: map[string]worker.Handler{"noop": func(context.Context, *worker.Job) error { return nil }}}

func TestTasksAreArchived(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	m, err := s.Manager(t.Context(), "bench", "manager.batch_size=2")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := m.Submit(t.Context(), task.Spec{Program: "noop"}); err != nil {
			t.Fatal(err)
		}
	}
	err = s.Run(t.Context(), func(ctx context.Context, c *Crew) error {
		if err := errors.Join(c.Servers(1), c.Workers(2, hand)); err != nil {
			return err
		}
		return Archive(ctx, m, 5, func(task *task.Task) error {
			if task.EndState() != statemachine.Succeeded {
				return errors.New("it has not succeeded")
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
	if c, err := s.Store.Census(t.Context()); err != nil || c.Listed[statemachine.Archived] != 5 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A daemon that cannot work ends the context of all, also if nobody asks for it.
func TestDaemonThatFails(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	err := s.Run(t.Context(), func(ctx context.Context, c *Crew) error {
		if err := errors.Join(c.Servers(1), c.Workers(2, hand)); err != nil {
			return err
		}
		wait.Eventually(t, time.Minute, func() bool {
			all, _, err := s.Store.Workers(ctx)
			return err == nil && len(all) == 2
		}, "two workers")
		err := s.Run(ctx, func(ctx context.Context, again *Crew) error {
			if err := again.Workers(2, hand); err != nil {
				return err
			}
			wait.Closed(t, time.Minute, ctx.Done(), "the end of the second crew")
			if !errors.Is(context.Cause(ctx), worker.ErrNameTaken) {
				t.Error(context.Cause(ctx))
			}
			return nil
		})
		if !errors.Is(err, worker.ErrNameTaken) {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
