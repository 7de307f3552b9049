package redistest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

func behindProxy(t *testing.T) (*redistest.Proxy, *redis.Client, *redistest.Server) {
	t.Helper()
	s := redistest.Shared(t)
	p := s.Proxy(t)
	return p, client(t, "tcp", p.Addr()), s
}

func TestProxyForwards(t *testing.T) {
	t.Parallel()
	_, c, _ := behindProxy(t)
	key := redistest.Namespace(t) + ":k"
	binary := "a\r\nb\x00" + string(make([]byte, 100_000))
	if err := c.Set(t.Context(), key, binary, 0).Err(); err != nil {
		t.Fatalf("set: %v", err)
	}
	if got, err := c.Get(t.Context(), key).Result(); err != nil || got != binary {
		t.Errorf("get = %d bytes, %v; want %d", len(got), err, len(binary))
	}
}

func TestDropReplyLosesOneReply(t *testing.T) {
	t.Parallel()
	p, c, s := behindProxy(t)
	key := redistest.Namespace(t) + ":n"
	drop := p.DropReply(redistest.Command("incr"))
	if err := c.Get(t.Context(), key).Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("another command was touched: %v", err)
	}
	if err := c.Incr(t.Context(), key).Err(); err == nil {
		t.Fatal("the reply was not lost")
	}
	wait.Closed(t, time.Second, drop.Done(), "the drop")
	if got := s.Do(t, "GET", key); got != "1" {
		t.Errorf("command carried out %v times, want 1", got)
	}
	if got, err := c.Incr(t.Context(), key).Result(); err != nil || got != 2 {
		t.Errorf("second call = %d, %v; want 2", got, err)
	}
}

func TestDropReplyInPipeline(t *testing.T) {
	t.Parallel()
	p, c, s := behindProxy(t)
	ns := redistest.Namespace(t)
	drop := p.DropReply(func(args []string) bool { return args[0] == "incr" && args[1] == ns+":b" })
	pipe := c.Pipeline()
	pipe.Incr(t.Context(), ns+":a")
	pipe.Incr(t.Context(), ns+":b")
	if _, err := pipe.Exec(t.Context()); err == nil || !drop.Happened() {
		t.Errorf("the second reply was not lost: %v", err)
	}
	if got := s.Do(t, "GET", ns+":b"); got != "1" {
		t.Errorf("second command carried out %v times, want 1", got)
	}
}

func TestDropReplyPassesNoScript(t *testing.T) {
	t.Parallel()
	p, c, s := behindProxy(t)
	key := redistest.Namespace(t) + ":n"
	source := "return redis.call('INCR', KEYS[1]) -- " + key
	script := redis.NewScript(source)
	drop := p.DropReply(func(args []string) bool {
		return strings.HasPrefix(args[0], "eval") && (args[1] == script.Hash() || args[1] == source)
	})
	// The server does not know the script: EVALSHA, NOSCRIPT, EVAL.
	if err := script.Run(t.Context(), c, []string{key}).Err(); err == nil || !drop.Happened() {
		t.Fatalf("reply to EVAL was not lost: %v", err)
	}
	if got := s.Do(t, "GET", key); got != "1" {
		t.Errorf("script ran %v times, want 1", got)
	}
}

func TestProxyDownAndUp(t *testing.T) {
	t.Parallel()
	p, c, _ := behindProxy(t)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	p.Down()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("PING answered while down")
	}
	p.Up()
	wait.Eventually(t, 5*time.Second, func() bool { return c.Ping(t.Context()).Err() == nil }, "PING after up")
}

func TestProxyCutClosesConnections(t *testing.T) {
	t.Parallel()
	p, c, _ := behindProxy(t)
	if err := c.Ping(t.Context()).Err(); err != nil || p.Links() != 1 {
		t.Fatalf("ping: %v, %d links", err, p.Links())
	}
	p.Cut()
	wait.Eventually(t, 5*time.Second, func() bool { return p.Links() == 0 }, "no link after a cut")
}

func TestProxyHangsUntilReleased(t *testing.T) {
	t.Parallel()
	p, c, _ := behindProxy(t)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	p.Hang()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("PING answered while hanging")
	}
	p.Release()
	wait.Eventually(t, 5*time.Second, func() bool { return c.Ping(t.Context()).Err() == nil }, "PING after release")
}

func TestProxyClosesWhileHanging(t *testing.T) {
	t.Parallel()
	p, c, _ := behindProxy(t)
	p.Hang()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_ = c.Ping(ctx)
}
