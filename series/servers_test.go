package series

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// TestMain also makes the test binary a runner, in a process that may be killed.
func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		runChild(strings.Fields(args))
		return
	}
	redistest.Main(m)
}

const childEnv = "TEST_RUNNER"

// runChild looks after the series of a namespace until it is killed.
func runChild(args []string) {
	ctx := context.Background()
	var site *tdf.Site
	for err := errors.New("not yet"); err != nil; {
		site, err = tdf.Connect(ctx, tdf.Config{Addr: args[0], Namespace: args[1], Durability: args[2], Logger: slog.New(slog.DiscardHandler)})
		if err != nil && !errors.Is(err, task.ErrUnreachable) {
			panic(err)
		}
	}
	_ = NewRunner(manager.New(site, "child", manager.Options{}), Options{}).Run(ctx)
}

// runners are processes that look after series, of which any can be killed and another begun in its place.
type runners struct {
	t    *testing.T
	args string
	all  []*exec.Cmd
}

func startRunners(t *testing.T, n int, args ...string) *runners {
	t.Helper()
	r := &runners{t: t, args: strings.Join(args, " "), all: make([]*exec.Cmd, n)}
	for i := range n {
		r.start(i)
	}
	t.Cleanup(func() {
		for i := range r.all {
			r.kill(i)
		}
	})
	return r
}

func (r *runners) start(i int) {
	r.t.Helper()
	child := exec.CommandContext(context.WithoutCancel(r.t.Context()), os.Args[0])
	child.Env, child.Stderr = append(os.Environ(), childEnv+"="+r.args), r.t.Output()
	if err := child.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.all[i] = child
}

func (r *runners) kill(i int) {
	_ = r.all[i].Process.Kill()
	_ = r.all[i].Wait() // it was killed
}

// firedIn counts the tasks of each occurrence, by "key time".
func firedIn(t *testing.T, m *manager.Manager) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for one, err := range m.Select(context.WithoutCancel(t.Context()), manager.Selection{All: true, Archived: true, Fields: []string{"meta"}}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[one.Meta[metaSeries]+" "+one.Meta[metaScheduled]]++
	}
	return seen
}

// everySecond makes so many series that are due each second for so long, by Redis' clock, and returns when the first is due.
func everySecond(t *testing.T, m *manager.Manager, n, seconds int, missed Missed) time.Time {
	t.Helper()
	now, _, err := clockOf(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	start := now.Truncate(time.Second).Add(3 * time.Second)
	for i := range n {
		d := Definition{
			Key: fmt.Sprintf("%s-%d", missed, i), Task: Task{"program": json.RawMessage(`"p"`)}, Every: task.Seconds(time.Second), Start: start,
			End: start.Add(time.Duration(seconds-1) * time.Second), Overlap: OverlapAllow, Missed: missed,
		}
		if _, err := Add(t.Context(), m, d, manager.ChangeOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return start
}

// 1,000 series that are due each second, three runners of which one is killed each five seconds, and a clock that steps back and forth:
// each due time fires exactly once, and those that leave out what they missed fire none twice.
func TestLongSeries(t *testing.T) {
	t.Parallel()
	clock := redistest.NewClock(t)
	srv := redistest.Start(t, redistest.WithClock(clock))
	ns := redistest.Namespace(t)
	m := manager.New(storetest.At(t, storetest.Where(srv), ns, nil), "m", manager.Options{})
	const all, once, seconds = 900, 100, 20
	everySecond(t, m, all, seconds, MissedAll)
	everySecond(t, m, once, seconds, MissedOnce)
	r := startRunners(t, 3, srv.Socket(), ns, "fast")
	left := func() (n int) {
		for s, err := range List(t.Context(), m, "") {
			if err != nil {
				t.Fatal(err)
			}
			if !s.Next.IsZero() {
				n++
			}
		}
		return n
	}
	steps := []time.Duration{-7 * time.Second, 0, 40 * time.Second, -time.Second}
	next, kills := time.Now().Add(5*time.Second), 0
	wait.Eventually(t, 4*time.Minute, func() bool {
		if time.Now().After(next) {
			r.kill(kills % 3)
			r.start(kills % 3)
			clock.Set(t, steps[kills%len(steps)])
			next = time.Now().Add(5 * time.Second)
			kills++
		}
		return left() == 0
	}, "the series are not over")
	seen, fired := firedIn(t, m), map[Missed]int{}
	for what, n := range seen {
		if n != 1 {
			t.Errorf("%s: fired %d times", what, n)
		}
		kind, _, _ := strings.Cut(what, "-")
		fired[Missed(kind)]++
	}
	if fired[MissedAll] != all*seconds || fired[MissedOnce] > once*seconds || fired[MissedOnce] < once || kills == 0 {
		t.Errorf("fired %v, want %d of those that leave nothing out; %d kills", fired, all*seconds, kills)
	}
}

// Where a replica has to confirm what is written, nothing that has fired is lost when the master is: each due time has fired once.
func TestLongSeriesFailover(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Start(t, redistest.Replicated()), redistest.Start(t, redistest.Replicated())
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica.Do(t, "REPLICAOF", host, port)
	ns := redistest.Namespace(t)
	m := manager.New(storetest.At(t, storetest.Where(master), ns, nil), "m", manager.Options{})
	wait.Eventually(t, 30*time.Second, func() bool {
		return strings.Contains(fmt.Sprint(replica.Do(t, "INFO", "replication")), "master_link_status:up")
	}, "the replica does not follow")
	where := storetest.Where(master)
	where.Durability, where.ReplicationTimeout = "ha", time.Second
	said := &confirmed{tasks: map[string]int64{}}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	const n, seconds = 50, 15
	everySecond(t, m, n, seconds, MissedAll)
	for range 2 {
		runner := NewRunner(manager.New(storetest.At(t, where, ns, nil), "m", manager.Options{}), Options{Logger: slog.New(said)})
		wg.Go(func() { _ = runner.Run(ctx) })
	}
	wait.Eventually(t, time.Minute, func() bool { return said.count() > n*4 }, "nothing fires")
	master.Kill(t)
	cancel()
	wg.Wait()
	replica.Do(t, "REPLICAOF", "NO", "ONE")
	site := storetest.At(t, storetest.Where(replica), ns, nil)
	if _, err := site.Internal.Store.OpenEpoch(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	promoted := manager.New(site, "m", manager.Options{})
	for what, id := range said.tasks {
		if one, err := promoted.Task(t.Context(), id); err != nil || one.Meta[metaSeries]+" "+one.Meta[metaOccurrence] != what {
			t.Errorf("%s is said to have begun as task %d: %+v, error %v", what, id, one, err)
		}
	}
	startRunners(t, 2, replica.Socket(), ns, "fast")
	want := n * seconds
	wait.Eventually(t, 2*time.Minute, func() bool { return len(firedIn(t, promoted)) >= want }, "not %d occurrences", want)
	for what, k := range firedIn(t, promoted) {
		if k != 1 {
			t.Errorf("%s: fired %d times", what, k)
		}
	}
}

// confirmed is a log that remembers which occurrences were said to have begun, by "key number", and their tasks.
type confirmed struct {
	mu    sync.Mutex
	tasks map[string]int64
}

func (c *confirmed) Enabled(context.Context, slog.Level) bool { return true }
func (c *confirmed) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *confirmed) WithGroup(string) slog.Handler            { return c }

func (c *confirmed) Handle(_ context.Context, r slog.Record) error {
	said := map[string]slog.Value{}
	r.Attrs(func(a slog.Attr) bool { said[a.Key] = a.Value; return true })
	if ids, ok := said["tasks"].Any().([]int64); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, id := range ids {
			c.tasks[fmt.Sprintf("%s %d", said["series"], said["occurrence"].Int64()-int64(len(ids)-1-i))] = id
		}
	}
	return nil
}

func (c *confirmed) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tasks)
}

// What a failover has lost fires again, in another epoch, and the log says so.
func TestFiresAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var said strings.Builder
	w.r.log = slog.New(slog.NewTextHandler(&said, nil))
	w.add(Definition{Every: seconds10, Overlap: OverlapAllow})
	w.pass(10)
	back := w.Snapshot(t)
	w.pass(20)
	w.tasks(2)
	back()
	if _, err := w.Dial(t).OpenEpoch(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var err error
	wait.Eventually(t, 20*time.Second, func() bool {
		w.StepClock(t, task.Stamp(at(20)))
		if _, err = w.r.pass(t.Context()); err != nil {
			_, _ = w.Site(t, nil).Internal.Store.OpenEpoch(t.Context(), true)
			_, _ = w.Store.OpenEpoch(t.Context(), true)
			return false
		}
		s := w.get()
		return s.Number == 2
	}, "it does not fire again")
	s := w.get()
	if len(s.History) != 2 || s.History[1].Epoch <= s.History[0].Epoch || !s.History[1].At.Equal(at(20)) {
		t.Errorf("%+v, error %v", s.History, err)
	}
	if !strings.Contains(said.String(), "an occurrence begins again: Redis has lost that it had begun") {
		t.Errorf("the log says %s", said.String())
	}
}
