package store_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/task"
)

// The deadline of a caller is its own: where it comes before an answer, that says nothing about Redis. Where Redis
// does not answer in time, that does.
func TestDeadlineOfCaller(t *testing.T) {
	t.Parallel()
	where := config.Defaults().Redis
	where.Host, where.ReadTimeout = neverAnswers(t), 300*time.Millisecond
	s, err := store.Dial(where, "n")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	calls := map[string]func(context.Context) error{
		"command": func(ctx context.Context) error { return s.Failed("get", s.Redis.Get(ctx, "k").Err()) },
		"pipeline": func(ctx context.Context) error {
			return s.Pipelined(ctx, "get", func(p redis.Pipeliner) { p.Get(ctx, "k") })
		},
	}
	for name, call := range calls {
		for of, ctx := range map[string]func() (context.Context, context.CancelFunc){
			"caller": func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), 50*time.Millisecond)
			},
			"redis": func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Minute) },
			"block": func() (context.Context, context.CancelFunc) { return s.WhileBlocked(t.Context(), time.Millisecond) },
		} {
			ctx, cancel := ctx()
			err := call(ctx)
			cancel()
			own := of == "caller"
			if own && !errors.Is(err, context.DeadlineExceeded) || own == errors.Is(err, task.ErrUnreachable) {
				t.Errorf("%s, deadline of %s: %v", name, of, err)
			}
		}
	}
}

// neverAnswers takes connections and never answers.
func neverAnswers(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "redis")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return socket
}
