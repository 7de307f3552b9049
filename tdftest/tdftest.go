// Package tdftest has a whole site for tests: a Redis and a server in this process, and
// a clock that moves when it is told to. Nothing has to be installed.
//
//	func TestResize(t *testing.T) {
//		site, clock := tdftest.New(t)
//		m := manager.New(site, "test", manager.Options{})
//		opened, err := m.Submit(t.Context(), task.Spec{Program: "resize", Class: "resize", Input: "a.png"})
//		...
//		tdftest.Work(t, site, map[string]worker.Handler{"resize": resize})
//		ended, err := m.Task(t.Context(), opened.ID)
//	}
//
// What needs a real Redis, such as its faults, it cannot show.
package tdftest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/server"
)

// TB is what this package needs of a testing.TB.
type TB interface {
	Helper()
	Cleanup(do func())
	Fatalf(format string, args ...any)
}

// Epoch is the time of a new site.
var Epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// New makes a site, which is gone when the test ends. Its server settles what is to be
// settled at once. Nothing is logged.
func New(tb TB) (*tdf.Site, *Clock) {
	tb.Helper()
	site, clock, stop, err := Start()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(stop)
	return site, clock
}

// Start is New for examples and programs, which have no test. The caller calls stop.
func Start() (site *tdf.Site, clock *Clock, stop func(), err error) {
	redis := miniredis.NewMiniRedis()
	if err := redis.Start(); err != nil {
		return nil, nil, nil, fmt.Errorf("start a Redis: %w", err)
	}
	clock = &Clock{redis: redis, now: Epoch}
	clock.Advance(0)
	ctx, cancel := context.WithCancel(context.Background())
	fail := func(err error) (*tdf.Site, *Clock, func(), error) {
		cancel()
		redis.Close()
		return nil, nil, nil, err
	}
	site, err = tdf.Connect(ctx, tdf.Config{Addr: redis.Addr(), Namespace: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fail(err)
	}
	srv, err := server.New(site, server.Options{Settings: server.Settings{RoundDuration: pace, RepairInterval: pace}})
	if err != nil {
		return fail(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Run(ctx) // it ends with ctx
	}()
	return site, clock, func() {
		cancel()
		<-ended
		_ = site.Close()
		redis.Close()
	}, nil
}

// pace is how often the parts look whether there is something to do. They do not wait for
// the clock, because it stands still.
const pace = 5 * time.Millisecond

// Clock is the time of a site, by which tasks start, rest and expire. It stands still
// but for Advance.
type Clock struct {
	mu    sync.Mutex
	redis *miniredis.Miniredis
	now   time.Time
}

// Now is the time of the site.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance lets time pass. A pause that a handler asks for (worker.RetryAfter,
// worker.HandBack) begins a moment later than this clock says: go a second further.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.redis.SetTime(c.now)
	c.redis.FastForward(d)
}
