package manager

import (
	"context"
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/task"
)

var evalsha = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),`)

// TestSubmitIsOneTrip: a manager opens a task in one call, also its first one, and also in
// a queue that gives defaults; only when the queues have changed it reads them, and opens by what they say now.
func TestSubmitIsOneTrip(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ns := redistest.Namespace(t)
	operator := newManager(t, ns, at(srv.Socket(), "0"))
	mustOpen(t, operator, 1, spec()) // Redis has the scripts now
	m := newManager(t, ns, at(srv.Socket(), "0"))
	calls := func() int {
		n, err := strconv.Atoi(evalsha.FindStringSubmatch(srv.Do(t, "INFO", "commandstats").(string))[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	check := func(step string, s task.Spec, want int, fails string) {
		t.Helper()
		before := calls()
		id, err := idOf(m.Submit(t.Context(), s))
		if err != nil {
			t.Fatal(err)
		}
		if got := calls() - before; got != want {
			t.Errorf("%s: %d calls, want %d", step, got, want)
		}
		if got := mustTask(t, m, id).Fields["max_fails"]; got != fails {
			t.Errorf("%s: max_fails %s, want %s", step, got, fails)
		}
	}
	check("the first one", spec(), 1, "0")
	if _, err := operator.AddQueue(t.Context(), task.QueueSpec{Name: "q", Defaults: task.Defaults{"max_fails": "3"}}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	in := spec()
	in.Queue = "q"
	check("in a queue that it does not know", in, 2, "3")
	check("in one that it knows", in, 1, "3")
	if _, err := operator.SetQueue(t.Context(), "q", setQueue("default_max_fails", "4"), ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	check("after a change", in, 3, "4")
	check("after that", in, 1, "4")
}

// pipelines counts what a client sends.
type pipelines struct{ n int }

func (p *pipelines) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p.n++
		return next(ctx, cmds)
	}
}

// A list reads where its tasks run in one trip a round number and page.
func TestListReadsPages(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	sent := &pipelines{}
	redisOf(m).Redis.AddHook(sent)
	tasks := make([]*task.Task, maxPage)
	for i := range tasks {
		tasks[i] = &task.Task{ID: int64(i + 1), Round: i % 2}
	}
	if err := m.PresentRounds(t.Context(), tasks, true); err != nil || sent.n != 2 {
		t.Errorf("%d trips, error %v; want 2", sent.n, err)
	}
}
