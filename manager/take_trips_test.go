package manager

import (
	"context"
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// trips counts what a client sends at once.
type trips struct{ n int }

func (p *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		p.n++
		return next(ctx, cmd)
	}
}

func (p *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p.n++
		return next(ctx, cmds)
	}
}

var calledOften = regexp.MustCompile(`cmdstat_([a-z|_]+):calls=(\d+),`)

// commands are how often Redis was given each command, those within scripts too.
func commands(t *testing.T, srv *redistest.Server) (all, scripts int) {
	t.Helper()
	info, _ := srv.Do(t, "INFO", "commandstats").(string)
	for _, m := range calledOften.FindAllStringSubmatch(info, -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		if m[1] != "info" {
			all += n
		}
		if m[1] == "evalsha" {
			scripts += n
		}
	}
	return all, scripts
}

// costs are the commands and scripts of a step.
func costs(t *testing.T, srv *redistest.Server, step func()) (all, scripts int) {
	t.Helper()
	all, scripts = commands(t, srv)
	step()
	after, afterScripts := commands(t, srv)
	return after - all, afterScripts - scripts
}

// TestTripsOfAPass: a pass looks once, and then makes one trip and calls one script a batch, and one more for what it handled
// last. The counts are exact: what is added to the path of a task shows here.
func TestTripsOfAPass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tasks, size, trips, scripts, commands int }{
		{0, 0, 1, 0, 4},
		{1, 0, 3, 2, 29},
		{2 * readAtOnce, readAtOnce, 4, 3, 170},
		{mostAtOnce, mostAtOnce, 3, 2, 281},
	} {
		t.Run(strconv.Itoa(c.tasks), func(t *testing.T) {
			t.Parallel()
			srv, ns := redistest.Start(t), redistest.Namespace(t)
			m := newManager(t, ns, at(srv.Socket(), "0"), quiet())
			succeed(t, srv, m, c.tasks)
			if _, err := m.lease(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer m.handling.end(t.Context())
			if _, err := m.Count(t.Context()); err != nil { // it is connected now
				t.Fatal(err)
			}
			m.batch.more = c.size
			sent := &trips{}
			redisOf(m).Redis.AddHook(sent)
			all, scripts := costs(t, srv, func() {
				n, err := m.pass(t.Context(), &Handlers{Succeeded: func(context.Context, *task.Task) error { return nil }, Failed: Archive}, 0)
				if err != nil || n != c.tasks {
					t.Fatalf("%d archived, %v", n, err)
				}
			})
			if sent.n != c.trips || scripts != c.scripts || all != c.commands {
				t.Errorf("%d trips, %d scripts, %d commands; want %d, %d, %d", sent.n, scripts, all, c.trips, c.scripts, c.commands)
			}
		})
	}
}

// TestTakeIsOneTrip: a batch is archived, and the next one granted and read, in one trip and one script, and a task adds few commands.
func TestTakeIsOneTrip(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{1: 23, mostAtOnce: 275} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			t.Parallel()
			srv, ns := redistest.Start(t), redistest.Namespace(t)
			m := newManager(t, ns, at(srv.Socket(), "0"), quiet())
			succeed(t, srv, m, 3*size)
			h, err := m.lease(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer h.end(t.Context())
			heads, err := m.store.Heads(t.Context(), tasks.Page{State: statemachine.Succeeded, Most: 2 * size})
			if err != nil {
				t.Fatal(err)
			}
			p := &statePass{pass: &pass{m: m, lease: h}, outcome: statemachine.Succeeded, handler: func(context.Context, *task.Task) error { return nil }}
			first, err := p.take(t.Context(), &tasks.TakeRequest{Outcome: p.outcome, Ask: heads[0].IDs[:size]})
			if err != nil {
				t.Fatal(err)
			}
			p.handle(t.Context(), first.Granted)
			sent := &trips{}
			redisOf(m).Redis.AddHook(sent)
			all, scripts := costs(t, srv, func() {
				next := tasks.Page{State: p.outcome, First: size, Most: size}
				taken, err := p.take(t.Context(), &tasks.TakeRequest{Outcome: p.outcome, Ask: heads[0].IDs[size:], Next: next})
				if err != nil || p.archived != size || len(taken.Granted) != size || len(taken.Next) != size {
					t.Fatalf("%d archived, %d granted, %d to come, %v", p.archived, len(taken.Granted), len(taken.Next), err)
				}
			})
			if sent.n != 1 || scripts != 1 || all != want {
				t.Errorf("%d trips, %d scripts, %d commands; want 1, 1, %d", sent.n, scripts, all, want)
			}
		})
	}
}

// succeed opens tasks that succeed on that Redis.
func succeed(t *testing.T, srv *redistest.Server, m *Manager, n int) {
	t.Helper()
	s, err := store.Dial(storetest.Where(srv), m.Namespace())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	mustOpen(t, m, n, spec())
	worktest.Drain(t, s, worktest.Echo)
}
