package store_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// wholeLife takes plain tasks from the opening to the archive in calls of some size, as manager and worker do while there is
// enough to do.
type wholeLife struct {
	*storetest.Space

	size    int
	session fleet.Session
	lease   fleet.Handling
}

func newWholeLife(tb testing.TB, sp *storetest.Space, size int) *wholeLife {
	tb.Helper()
	l := &wholeLife{Space: sp, size: size, session: sp.Register(tb, "w"), lease: handlingOf("i")}
	if err := sp.Store.BeginHandling(tb.Context(), l.lease, &fleet.HandlingWatch{}); err != nil {
		tb.Fatal(err)
	}
	return l
}

func (l *wholeLife) open(tb testing.TB, n int) (ids []int64) {
	tb.Helper()
	for left := n; left > 0; left -= l.size {
		specs := make([]task.Definition, min(l.size, left))
		for i := range specs {
			specs[i] = storetest.Spec(func(d *task.Definition) { storetest.Set(d, "input", strconv.Itoa(i)) })
		}
		ids = append(ids, l.Open(tb, specs...)...)
	}
	return ids
}

// work claims, and then reports in the call that claims the next ones.
func (l *wholeLife) work(tb testing.TB, n int) {
	tb.Helper()
	var commits []tasks.Commit
	for done := -l.size; done < n; {
		turn := l.Store.Turn(tb.Context(), commits, l.claim())
		if turn.Moved != nil || turn.Claimed != nil {
			tb.Fatal(turn.Moved, turn.Claimed)
		}
		for _, o := range turn.Outcomes {
			if o.Err != nil || o.Unsettled {
				tb.Fatalf("%+v", o)
			}
		}
		done += l.size
		commits = l.reports(tb, turn.Reply.Tasks)
	}
}

func (l *wholeLife) claim() *tasks.ClaimRequest {
	return &tasks.ClaimRequest{
		Worker: "w", Request: conn.NewToken(), Max: l.size, Incarnation: l.session.Incarnation, Node: "node-1",
		Candidates: storetest.Free(task.Bucket{}),
	}
}

// reports are what a worker says of programs that printed a line.
func (l *wholeLife) reports(tb testing.TB, held []tasks.Claimed) []tasks.Commit {
	tb.Helper()
	commits := make([]tasks.Commit, len(held))
	for i := range held {
		t := &held[i].Task
		m, err := statemachine.Decide(t, statemachine.Occurrence{
			Event: statemachine.Report, Actor: statemachine.Worker, Claim: t.Current.Claim, Round: t.Round, Settles: true,
		}, t.Current.Running)
		if err != nil {
			tb.Fatal(err)
		}
		commits[i] = tasks.Commit{
			Move: m, Writer: "w", Node: tasks.NodeGood,
			Fields: []string{"0:output", "33\n", "0:error", "", "0:exit_code", "0", "0:user_time", "0.001", "0:system_time", "0.002", "0:max_memory", "3100"},
			Lines:  []tasks.Line{{At: t.Current.Running, Text: "program started"}},
		}
	}
	return commits
}

// archive takes the tasks as a manager does that has handlers.
func (l *wholeLife) archive(tb testing.TB, ids []int64) {
	tb.Helper()
	var moves []statemachine.Move
	parts := append(slices.Collect(slices.Chunk(ids, l.size)), nil)
	for _, part := range parts {
		taken, err := l.Store.Take(tb.Context(), &tasks.TakeRequest{
			Instance: l.lease.Instance, Writer: "m", Archive: moves, Outcome: statemachine.Succeeded, Ask: part,
			Next: tasks.Page{State: statemachine.Succeeded, First: l.size, Most: l.size},
		})
		if err != nil || len(taken.Granted) != len(part) {
			tb.Fatalf("%d of %d granted, error %v", len(taken.Granted), len(part), err)
		}
		for i := range taken.Archived {
			if taken.Archived[i].Err != nil {
				tb.Fatal(taken.Archived[i].Err)
			}
		}
		moves = make([]statemachine.Move, len(part))
		for i, t := range taken.Granted {
			moves[i], err = statemachine.Decide(&t.Task, statemachine.Occurrence{Event: statemachine.Archive, Actor: statemachine.Manager}, 0)
			if err != nil {
				tb.Fatal(err)
			}
		}
	}
}

func (l *wholeLife) live(tb testing.TB, n int) {
	tb.Helper()
	ids := l.open(tb, n)
	l.work(tb, n)
	l.archive(tb, ids)
}

// BenchmarkLife is the whole life of a plain task. Beside what the scripts take it says what the process of Redis takes.
func BenchmarkLife(b *testing.B) {
	for _, size := range []int{1, 8, 100} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			l := newWholeLife(b, storetest.On(b, redistest.Start(b)), size)
			l.live(b, size)
			before := redisCPU(b, l.Space)
			timed(b, l.Space, func() { l.live(b, b.N) })
			b.ReportMetric((redisCPU(b, l.Space)-before)/float64(b.N), "redis-cpu-µs/op")
		})
	}
}

var cpuTime = regexp.MustCompile(`used_cpu_(?:sys|user):([0-9.]+)`)

// redisCPU is how many microseconds the process of Redis has run.
func redisCPU(tb testing.TB, sp *storetest.Space) (us float64) {
	tb.Helper()
	for _, found := range cpuTime.FindAllStringSubmatch(sp.Raw.Info(tb.Context(), "cpu").Val(), -1) {
		seconds, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			tb.Fatal(err)
		}
		us += seconds * 1e6
	}
	return us
}

// TestCostsOfALife counts what a plain task costs Redis from its opening to the archive: calls of scripts, and commands, those
// inside the scripts among them.
func TestCostsOfALife(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]struct{ scripts, commands, bytes float64 }{1: {3, 85.1, 3150}, 100: {0.03, 11.1, 540}} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			t.Parallel()
			const n = 200
			l := newWholeLife(t, storetest.On(t, redistest.Start(t)), size)
			l.live(t, 2*size)
			scripts, commands := l.commands(t)
			bytes := l.received(t)
			l.live(t, n)
			bytes = (l.received(t) - bytes) / n
			scriptsAfter, commandsAfter := l.commands(t)
			// There is one claim more than reports, and one archiving more than grants. Each script reads the clock of tests.
			scripts = (scriptsAfter - scripts - 2) / n
			commands = (commandsAfter - commands) / n
			if scripts > want.scripts+0.001 || commands > want.commands {
				t.Errorf("%.2f calls and %.1f commands a task, want at most %.2f and %.1f", scripts, commands, want.scripts, want.commands)
			}
			if bytes > want.bytes {
				t.Errorf("%.0f bytes a task to Redis, want at most %.0f", bytes, want.bytes)
			}
		})
	}
}

var netInput = regexp.MustCompile(`total_net_input_bytes:(\d+)`)

// received is how many bytes Redis has received.
func (l *wholeLife) received(t *testing.T) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(netInput.FindStringSubmatch(l.Raw.Info(t.Context(), "stats").Val())[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var commandCalls = regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`)

func (l *wholeLife) commands(t *testing.T) (scripts, all float64) {
	t.Helper()
	for _, found := range commandCalls.FindAllStringSubmatch(l.Raw.Info(t.Context(), "commandstats").Val(), -1) {
		n, err := strconv.ParseFloat(found[2], 64)
		switch {
		case err != nil:
			t.Fatal(err)
		case found[1] == "evalsha":
			scripts += n
		}
		if !strings.HasPrefix(found[1], "info") {
			all += n
		}
	}
	return scripts, all
}
