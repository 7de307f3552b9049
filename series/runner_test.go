package series

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// world is a namespace whose clock stands at noon until it is moved, with a runner that makes a pass when it is told to.
type world struct {
	*storetest.Space
	t *testing.T
	m *manager.Manager
	r *Runner
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Space: storetest.New(t), t: t}
	w.SetClock(t, task.Stamp(noon))
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.m = manager.New(w.Site(t, log), "m", manager.Options{})
	w.r = NewRunner(w.m, Options{Logger: log})
	return w
}

// pass moves the clock to so many seconds after noon and looks once.
func (w *world) pass(seconds int) {
	w.t.Helper()
	w.StepClock(w.t, task.Stamp(at(seconds)))
	if _, err := w.r.pass(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) add(d Definition) *Series {
	w.t.Helper()
	if d.Task == nil {
		d.Task = Task{"program": json.RawMessage(`"p"`)}
	}
	d.Key = "k"
	s, err := Add(w.t.Context(), w.m, d, manager.ChangeOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) get() *Series {
	w.t.Helper()
	s, err := Get(w.t.Context(), w.m, "k")
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// tasks checks how many there are.
func (w *world) tasks(want int64) {
	w.t.Helper()
	if n, err := w.m.NewestTask(w.t.Context()); n != want || err != nil {
		w.t.Fatalf("%d tasks, want %d, error %v", n, want, err)
	}
}

// end ends a task, whose program has said when it wants to run again, in seconds after noon; 0 for nothing.
func (w *world) end(id int64, eta int) {
	w.t.Helper()
	if _, err := w.m.Cancel(w.t.Context(), []int64{id}, manager.ChangeOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if eta != 0 {
		w.Raw.HSet(w.t.Context(), w.Key("task:"+strconv.FormatInt(id, 10)), "0:eta", task.Stamp(at(eta)).Text())
	}
}

var seconds10 = task.Seconds(10 * time.Second)

// Each occurrence is a task that knows which one it is, and the series knows its task.
func TestRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(Definition{Every: seconds10})
	w.pass(9)
	w.tasks(0)
	w.pass(12)
	w.pass(12)
	w.tasks(1)
	if got := w.Task(t, 1); got.Fields["record"] != "series:k" || got.Fields["plan"] != "" ||
		!strings.Contains(got.Fields["meta"], `"scheduled":"2027-01-15T12:00:10Z"`) {
		t.Errorf("task %v", got.Fields)
	}
	s := w.get()
	if !s.Next.Equal(at(20)) || s.Number != 1 || len(s.History) != 1 || s.History[0].Task != 1 || !slices.Equal(s.Live, []int64{1}) {
		t.Errorf("%+v", s)
	}
	w.pass(20)
	w.tasks(1)
	w.end(1, 0)
	w.pass(30)
	w.tasks(2)
	if s := w.get(); len(s.History) != 3 || s.History[1].What != skipped || s.History[2].Task != 2 || !slices.Equal(s.Live, []int64{2}) {
		t.Errorf("%+v", s)
	}
}

// What waits begins when the one before has ended, and not before the next look at all that is due.
func TestRunnerQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(Definition{Every: seconds10, Overlap: OverlapQueue})
	w.pass(10)
	w.pass(20)
	w.pass(25)
	w.tasks(1)
	if s := w.get(); !s.Waits {
		t.Errorf("%+v", s)
	}
	w.end(1, 0)
	w.pass(26)
	w.tasks(2)
	if s := w.get(); s.Waits || !s.Last.Equal(at(20)) {
		t.Errorf("%+v", s)
	}
}

func TestRunnerReplace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(Definition{Every: seconds10, Overlap: OverlapReplace})
	w.pass(10)
	w.pass(20)
	if got := w.Task(t, 1); got.State != statemachine.Cancelled || got.Fields["cancel_reason"] == "" {
		t.Errorf("task %v", got.Fields)
	}
	w.pass(20)
	w.tasks(2)
}

// A program says when it runs next; where it says nothing the series is over, and begins again by hand.
func TestRunnerETA(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(Definition{ETA: true})
	w.pass(0)
	w.tasks(1)
	w.end(1, 33)
	w.pass(1)
	if s := w.get(); !s.Next.Equal(at(33)) || s.Over() {
		t.Errorf("%+v", s)
	}
	w.pass(32)
	w.tasks(1)
	w.pass(33)
	w.tasks(2)
	w.end(2, 0)
	w.pass(34)
	if s := w.get(); !s.Over() {
		t.Errorf("%+v", s)
	}
	if p, err := w.m.PendingRecords(t.Context(), task.KindSeries, 9); err != nil || len(p.Records) > 0 || !p.Next.IsZero() {
		t.Errorf("%+v, error %v", p, err)
	}
	if s, err := RunNow(t.Context(), w.m, "k", manager.ChangeOptions{}); err != nil || len(s.History) != 3 || s.History[2].Task != 3 {
		t.Errorf("%+v, error %v", s, err)
	}
	w.end(3, 50)
	w.pass(40)
	if s := w.get(); !s.Next.Equal(at(50)) || s.Number != 3 {
		t.Errorf("%+v", s)
	}
}

// What cannot begin is said, and tried again; nothing else suffers.
func TestRunnerTriesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	if _, err := w.m.AddQueue(ctx, task.QueueSpec{Name: "q"}, manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	w.add(Definition{Every: seconds10, Task: Task{"program": json.RawMessage(`"p"`), "queue": json.RawMessage(`"q"`)}})
	if err := w.m.RemoveQueue(ctx, "q", manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	w.pass(10)
	if s := w.get(); !strings.Contains(s.Error, "no such queue") || s.Number != 0 {
		t.Errorf("%+v", s)
	}
	w.pass(39)
	if _, err := w.m.AddQueue(ctx, task.QueueSpec{Name: "q"}, manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	w.pass(40)
	if s := w.get(); s.Error != "" || !s.Last.Equal(at(40)) || s.History[0].What != passed {
		t.Errorf("%+v", s)
	}
}

// A record that somebody has spoilt is named, and keeps no other from its turn.
func TestRunnerDamage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(Definition{Every: seconds10})
	spoilt := task.Record{Kind: task.KindSeries, Name: "a", Value: "{", Due: at(1)}
	if _, err := w.m.WriteRecord(t.Context(), spoilt, manager.RecordTasks{}); err != nil {
		t.Fatal(err)
	}
	w.pass(10)
	w.tasks(1)
	if p, err := w.m.PendingRecords(t.Context(), task.KindSeries, 9); err != nil || len(p.Records) > 0 {
		t.Errorf("%+v, error %v", p, err)
	}
	w.Raw.Set(t.Context(), w.Key("record:series:a"), "x", 0)
	w.Raw.ZAdd(t.Context(), w.Key("records_due:series"), redis.Z{Score: 1, Member: "a"})
	w.end(1, 0)
	w.StepClock(t, task.Stamp(at(20)))
	if pause, err := w.r.pass(t.Context()); err == nil || pause != 0 {
		t.Errorf("a record that cannot be written: %v, error %v", pause, err)
	}
	w.tasks(2)
}

// Pause, resume, another interval, run now, remove.
func TestChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, o := t.Context(), manager.ChangeOptions{}
	w.add(Definition{Every: seconds10, Overlap: OverlapAllow})
	if _, err := Add(ctx, w.m, Definition{Key: "k", Task: Task{"program": json.RawMessage(`"p"`)}, Every: seconds10}, o); !errors.Is(err, ErrExists) {
		t.Errorf("a second one: error %v", err)
	}
	if s, err := Pause(ctx, w.m, "k", true, o); err != nil || !s.Paused {
		t.Errorf("%+v, error %v", s, err)
	}
	w.pass(35)
	w.tasks(0)
	if s, err := RunNow(ctx, w.m, "k", o); err != nil || s.Number != 1 || !s.Next.Equal(at(10)) {
		t.Errorf("%+v, error %v", s, err)
	}
	w.tasks(1)
	if s, err := Pause(ctx, w.m, "k", false, o); err != nil || s.Paused || !s.Next.Equal(at(40)) {
		t.Errorf("%+v, error %v", s, err)
	}
	w.pass(36)
	w.tasks(1)
	for _, dry := range []bool{true, false} {
		s, err := Set(ctx, w.m, "k", func(d *Definition) error {
			d.Every = task.Seconds(time.Minute)
			return nil
		}, manager.ChangeOptions{DryRun: dry})
		if err != nil || !s.Next.Equal(at(60)) {
			t.Errorf("%+v, error %v", s, err)
		}
		if got := w.get(); (got.Every == seconds10) != dry {
			t.Errorf("dry %v: %+v", dry, got)
		}
	}
	bad := errors.New("no")
	if _, err := Set(ctx, w.m, "k", func(*Definition) error { return bad }, o); !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
	w.pass(60)
	w.tasks(2)
	n := 0
	for s, err := range List(ctx, w.m, "") {
		if n++; err != nil || s.Key != "k" {
			t.Errorf("%+v, error %v", s, err)
		}
	}
	if n != 1 {
		t.Errorf("%d series", n)
	}
	if err := Remove(ctx, w.m, "k", o); err != nil {
		t.Error(err)
	}
	if err := Remove(ctx, w.m, "k", o); !errors.Is(err, task.ErrNoRecord) {
		t.Errorf("removed again: error %v", err)
	}
	w.pass(200)
	w.tasks(2)
}

// Whatever the clock of Redis does, and however many look, each time is dealt with once.
func TestRunnersRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const keys, runners = 5, 3
	for i := range keys {
		d := Definition{Key: string(rune('a' + i)), Task: Task{"program": json.RawMessage(`"p"`)}, Every: seconds10, Overlap: OverlapAllow, Missed: MissedAll}
		if _, err := Add(t.Context(), w.m, d, manager.ChangeOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range runners {
		wg.Go(func() {
			if err := NewRunner(w.m, Options{Logger: slog.New(slog.DiscardHandler)}).Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	for _, now := range []int{10, 20, 15, 33, -100, 40, 95} {
		w.StepClock(t, task.Stamp(at(now)))
		w.waitFor(keys * int64(max(0, max(now, 0)/10)))
	}
	cancel()
	wg.Wait()
	seen := map[string]int{}
	n, _ := w.m.NewestTask(t.Context())
	for id := range n {
		seen[w.Task(t, id+1).Fields["meta"]]++
	}
	if len(seen) != keys*9 || n != keys*9 {
		t.Errorf("%d tasks of %d occurrences, want %d", n, len(seen), keys*9)
	}
}

// waitFor waits until there are so many tasks.
func (w *world) waitFor(n int64) {
	w.t.Helper()
	wait.Eventually(w.t, 20*time.Second, func() bool {
		is, err := w.m.NewestTask(w.t.Context())
		return err == nil && is >= n
	}, "not %d tasks", n)
}
