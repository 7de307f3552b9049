package manager

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A01: the hash holds exactly the sixteen fields of the original, plus nothing.
func TestSubmitWithDefaults(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	m := newManager(t, ns)
	id, err := idOf(m.Submit(t.Context(), task.Spec{Program: "p", Source: "s", Input: "1 2"}))
	if err != nil || id != 1 {
		t.Fatalf("Submit = %d, %v, want 1, nil", id, err)
	}
	task, err := m.Task(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := strconv.ParseFloat(task.Fields["0:open"], 64)
	if age := float64(time.Now().UnixMicro())/1e6 - opened; err != nil || age < -1 || age > 30 {
		t.Errorf("0:open = %q, want about now", task.Fields["0:open"])
	}
	delete(task.Fields, "0:open")
	want := map[string]string{
		"program": "p", "source": "s", "input": "1 2", "id": "1", "start_after": "0", "end_before": "inf",
		"timeout": "inf", "max_fails": "0", "max_timeouts": "0", "state": "open", "round": "0", "fails": "0",
		"timeouts": "0", "log": "", "namespace": ns,
	}
	if diff := cmp.Diff(want, task.Fields); diff != "" {
		t.Errorf("hash (-want +got):\n%s", diff)
	}
	if got := srv.Do(t, "GET", ns+":task_id"); got != "1" {
		t.Errorf("task_id = %v, want 1", got)
	}
	if got := srv.Do(t, "ZSCORE", ns+":open", "1"); got != "0" {
		t.Errorf("score = %v, want 0", got)
	}
}

// A request whose key nobody can give again is not remembered for a day: who opens one by one leaves one with each task.
func TestHowLongRequestsAreRemembered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open func(m *Manager) error
		want time.Duration
	}{
		"one":                   {func(m *Manager) error { _, err := m.Submit(t.Context(), spec()); return err }, time.Hour},
		"one with a key":        {func(m *Manager) error { _, err := m.Submit(t.Context(), spec(), WithRequestKey("k")); return err }, 24 * time.Hour},
		"one with an empty key": {func(m *Manager) error { _, err := m.Submit(t.Context(), spec(), WithRequestKey("")); return err }, time.Hour},
		// A *SubmissionError tells the key.
		"all": {func(m *Manager) error {
			_, err := m.SubmitAll(t.Context(), slices.Values([]task.Spec{spec()}))
			return err
		}, 24 * time.Hour},
	} {
		ns, srv := redistest.Namespace(t), redistest.Shared(t)
		for range 2 {
			if err := c.open(newManager(t, ns)); err != nil {
				t.Fatal(err)
			}
		}
		keys, _ := srv.Do(t, "KEYS", ns+":request:*").([]any)
		for _, key := range keys {
			seconds, _ := srv.Do(t, "TTL", key.(string)).(int64)
			if d := c.want - time.Duration(seconds)*time.Second; d < 0 || d > 10*time.Minute {
				t.Errorf("%s: remembered for %d s, want %s", name, seconds, c.want)
			}
		}
		if want := map[bool]int{true: 1, false: 2}[name == "one with a key"]; len(keys) != want {
			t.Errorf("%s: %v, want %d requests", name, keys, want)
		}
	}
}

// A02: ids are distinct and without gaps, also with many clients.
func TestSubmitFromManyClients(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	var clients sync.WaitGroup
	ids := make([][]int64, 10)
	for c := range ids {
		m := newManager(t, ns)
		clients.Go(func() {
			for range 100 {
				id, err := idOf(m.Submit(t.Context(), spec()))
				if err != nil {
					t.Error(err)
					return
				}
				ids[c] = append(ids[c], id)
			}
		})
	}
	clients.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(ids...)))
	for i, id := range all {
		if id != int64(i)+1 {
			t.Fatalf("id %d at place %d: ids are not 1..1000", id, i+1)
		}
	}
	counts, err := newManager(t, ns).Count(t.Context())
	if err != nil || counts[statemachine.Open] != 1000 || len(all) != 1000 {
		t.Errorf("%d ids, counts %v, %v, want 1000 open", len(all), counts, err)
	}
}

// A03: a random part of a second, the same in field and score.
func TestRandomStartOffset(t *testing.T) {
	t.Parallel()
	for _, spelling := range []string{"true", "True"} {
		ns, srv := redistest.Namespace(t), redistest.Shared(t)
		m := newManager(t, ns, withSettings("task_defaults.add_random_start_offset="+spelling, "task_defaults.start_after=100"))
		least, most := 101.0, 100.0
		for _, id := range mustOpen(t, m, 20, spec()) {
			text := srv.Do(t, "HGET", ns+":task:"+fmt.Sprint(id), "start_after")
			field, _ := strconv.ParseFloat(fmt.Sprint(text), 64)
			score, _ := strconv.ParseFloat(fmt.Sprint(srv.Do(t, "ZSCORE", ns+":open", fmt.Sprint(id))), 64)
			if field < 100 || field >= 101 || field != score {
				t.Errorf("start_after %v, score %v, want the same from 100 to 101", field, score)
			}
			least, most = min(least, field), max(most, field)
		}
		if most-least < 0.1 { // by chance once in 10^17 times
			t.Errorf("20 tasks with the same start begin from %v to %v, want them mixed over a second", least, most)
		}
	}
}

func TestRandomStartOffsetStaysBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for range 100 {
		d := storetest.Define("start_after", "100", "end_before", "100.000002")
		d.Shuffle()
		from, err := statemachine.ParseTime(d.Text("start_after"))
		if err != nil || from < 100_000_000 || from > 100_000_002 {
			t.Fatalf("start %v, %v, want within 2 microseconds after 100 s", from, err)
		}
	}
	d := storetest.Define("start_after", "100", "end_before", "100")
	if d.Shuffle(); d.Text("start_after") != "100" {
		t.Errorf("without room: %q, want 100", d.Text("start_after"))
	}
}

func TestSpecValues(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), withSettings("task_defaults.timeout=7", "task_defaults.end_before=5000000000",
		"task_defaults.max_fails=2", "task_defaults.fail_on=exit"))
	for _, c := range []struct {
		name string
		set  func(*task.Spec)
		want map[string]string
	}{
		{"defaults", func(*task.Spec) {}, map[string]string{
			"timeout": "7", "end_before": "5000000000", "max_fails": "2", "fail_on": "exit",
		}},
		{"without limits", func(s *task.Spec) {
			s.Timeout, s.EndIn, s.Retry.Limit, s.MaxLosses = -1, -1, task.Unlimited, task.Unlimited
			s.FailOn = task.FailOnAny
		}, map[string]string{"timeout": "inf", "end_before": "inf", "max_fails": "inf", "max_losses": "inf", "fail_on": ""}},
		{"given", func(s *task.Spec) {
			s.Timeout, s.StartAfter, s.EndBefore = 1500*time.Millisecond, time.Unix(0, 0), time.Unix(3000, 5000)
			s.Retry.Limit, s.MaxTimeouts, s.FailOn = task.AtMost(0), task.AtMost(4), task.FailOnStderr
		}, map[string]string{
			"timeout": "1.5", "start_after": "0", "end_before": "3000.000005",
			"max_fails": "0", "max_timeouts": "4", "fail_on": "stderr",
		}},
		{"a shorter timeout than Redis can hold", func(s *task.Spec) { s.Timeout = 1 }, map[string]string{"timeout": "0.000001"}},
		{"argv", func(s *task.Spec) { s.Argv = []string{"a b", "", "ü"} }, map[string]string{"argv": `["a b","","ü"]`}},
	} {
		s := spec()
		c.set(&s)
		id, err := idOf(m.Submit(t.Context(), s))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		task, err := m.Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for field, want := range c.want {
			if got := task.Fields[field]; got != want {
				t.Errorf("%s: %s = %q, want %q", c.name, field, got, want)
			}
		}
	}
}

func TestBadSpecsNameTheField(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	for field, spoil := range map[string]func(*task.Spec){
		"program":      func(s *task.Spec) { s.Program = "../x" },
		"source":       func(s *task.Spec) { s.Source = "a\x00b" },
		"input":        func(s *task.Spec) { s.Input = "a\x00b" },
		"argv":         func(s *task.Spec) { s.Argv = []string{"\xff"} },
		"start_in":     func(s *task.Spec) { s.StartAfter, s.StartIn = time.Unix(20, 0), time.Second },
		"start_after":  func(s *task.Spec) { s.StartAfter, s.EndBefore = time.Unix(20, 0), time.Unix(10, 0) },
		"end_before":   func(s *task.Spec) { s.EndBefore = time.Unix(-10, 0) },
		"max_fails":    func(s *task.Spec) { s.Retry.Limit = task.AtMost(-1) },
		"max_timeouts": func(s *task.Spec) { s.MaxTimeouts = task.AtMost(math.MinInt) },
		"max_losses":   func(s *task.Spec) { s.MaxLosses = task.AtMost(-7) },
		"fail_on":      func(s *task.Spec) { s.FailOn = "never" },
	} {
		s := spec()
		spoil(&s)
		_, err := m.Submit(t.Context(), s)
		var fe *statemachine.FieldError
		if !errors.As(err, &fe) || fe.Field != field {
			t.Errorf("spoilt %s: error %v, want a FieldError that names it", field, err)
		}
		if err := m.Check(s); !errors.As(err, &fe) || fe.Field != field {
			t.Errorf("Check of spoilt %s: %v", field, err)
		}
	}
	if counts, err := m.Count(t.Context()); err != nil || counts.Total() != 0 {
		t.Errorf("%v, %v, want no task", counts, err)
	}
}

func TestSubmitAllInBatches(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), withSettings("manager.batch_size=10"))
	var done []int
	specs := slices.Values(slices.Repeat([]task.Spec{spec()}, 25))
	ids, err := idsOpened(m.SubmitAll(t.Context(), specs, WithRequestKey("once"), WithProgress(func(n int) { done = append(done, n) })))
	if err != nil || len(ids) != 25 || ids[24] != 25 {
		t.Fatalf("ids %v, %v, want 1..25", ids, err)
	}
	if !slices.Equal(done, []int{10, 20, 25}) {
		t.Errorf("progress %v, want 10 20 25", done)
	}
	again, err := idsOpened(m.SubmitAll(t.Context(), specs, WithRequestKey("once")))
	if err != nil || !slices.Equal(ids, again) {
		t.Errorf("repeated: %v, %v, want the same ids", again, err)
	}
	_, err = m.SubmitAll(t.Context(), slices.Values(slices.Repeat([]task.Spec{spec()}, 5)), WithRequestKey("once"))
	if !errors.Is(err, task.ErrRequestKey) {
		t.Errorf("key for other tasks: %v, want task.ErrRequestKey", err)
	}
	if counts, _ := m.Count(t.Context()); counts.Total() != 25 {
		t.Errorf("%d tasks, want 25", counts.Total())
	}
}

// A request key stands for the tasks as they were given, in their order.
func TestRequestKeyStandsForItsTasks(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	none := []string{}
	given := []task.Spec{spec(), spec()}
	given[1].Input, given[1].StartAfter = "b", time.Now()
	open := func(specs []task.Spec, opts ...SubmitOption) ([]int64, error) {
		return idsOpened(m.SubmitAll(t.Context(), slices.Values(specs), append(opts, WithRequestKey("k"))...))
	}
	for range 2 {
		if ids, err := open(given); err != nil || !slices.Equal(ids, []int64{1, 2}) {
			t.Fatalf("ids %v, %v, want 1 and 2", ids, err)
		}
		given[1].StartAfter = given[1].StartAfter.Add(time.Hour) // counted from now
	}
	for name, change := range map[string]func(specs []task.Spec){
		"word":      func(s []task.Spec) { s[1].Input = "c" },
		"argv":      func(s []task.Spec) { s[1].Argv = []string{"b"} },
		"order":     func(s []task.Spec) { s[0], s[1] = s[1], s[0] },
		"program":   func(s []task.Spec) { s[0].Program = "another" },
		"parameter": func(s []task.Spec) { s[0].Retry.Limit = task.AtMost(5) },
		"nothing":   func(s []task.Spec) { s[0].Labels = none },
		"key":       func(s []task.Spec) { s[0].Key = "mine" },
	} {
		other := slices.Clone(given)
		change(other)
		if ids, err := open(other); !errors.Is(err, task.ErrRequestKey) || len(ids) > 0 {
			t.Errorf("another %s: ids %v, %v, want task.ErrRequestKey", name, ids, err)
		}
	}
	plan := mustPlan(t, m, task.PlanSpec{})
	if _, err := open(given, InPlan(plan)); !errors.Is(err, task.ErrRequestKey) {
		t.Errorf("in a plan: %v, want task.ErrRequestKey", err)
	}
	if counts, _ := m.Count(t.Context()); counts.Total() != 2 {
		t.Errorf("%d tasks, want 2", counts.Total())
	}
}

// A plan that was cut short takes the tasks of no other one, and is finished by its own.
func TestPlanIsFinishedByItsOwnTasks(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	given := slices.Repeat([]task.Spec{spec()}, 150)
	given[0].Step, given[149].Needs = "first", []task.Need{{Index: 0}, {Index: 148}}
	submit := func(ctx context.Context, specs []task.Spec, opts ...SubmitOption) (task.PlanID, error) {
		id, err := m.NewPlan(context.WithoutCancel(ctx), task.PlanSpec{Name: "p", RequestKey: "k", Contents: Digest(specs, nil)})
		if err != nil {
			return id, err
		}
		return id, m.fill(ctx, id, specs, opts...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	id, err := submit(ctx, given, WithProgress(func(int) { cancel() }))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want it to be cut short", err)
	}
	for name, change := range map[string]func(specs []task.Spec){
		"word":  func(s []task.Spec) { s[0].Input = "c" },
		"step":  func(s []task.Spec) { s[0].Step = "second" },
		"need":  func(s []task.Spec) { s[149].Needs = []task.Need{{Index: 1}, {Index: 148}} },
		"kind":  func(s []task.Spec) { s[149].Needs = []task.Need{{Index: 0, On: task.NeedsAny}, {Index: 148}} },
		"order": func(s []task.Spec) { s[149].Needs = []task.Need{{Index: 148}, {Index: 0}} },
	} {
		other := slices.Clone(given)
		change(other)
		if got, err := submit(t.Context(), other); !errors.Is(err, task.ErrRequestKey) || got != id {
			t.Errorf("another %s: plan %d, %v, want task.ErrRequestKey", name, got, err)
		}
		if name == "word" || name == "step" { // also by those who do not know the whole
			if err := m.fill(t.Context(), id, other); !errors.Is(err, task.ErrRequestKey) {
				t.Errorf("another %s: %v, want task.ErrRequestKey", name, err)
			}
		}
	}
	if p, err := m.Plan(t.Context(), id); err != nil || p.State != task.PlanBuilding || p.Total != 100 {
		t.Errorf("%+v, %v, want the plan to be built still, with 100 tasks", p, err)
	}
	if again, err := submit(t.Context(), given); err != nil || again != id {
		t.Fatalf("plan %d, %v, want %d", again, err, id)
	}
	if p, err := m.Plan(t.Context(), id); err != nil || p.Total != 150 {
		t.Errorf("%+v, %v, want 150 tasks", p, err)
	}
}

// fill adds the tasks to a plan by the request key of the test.
func (m *Manager) fill(ctx context.Context, plan task.PlanID, specs []task.Spec, opts ...SubmitOption) error {
	_, err := m.SubmitAll(ctx, slices.Values(specs), append(opts, InPlan(plan), WithRequestKey("plan k"))...)
	return err
}

func TestSubmitAllSaysHowFarItCame(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), withSettings("manager.batch_size=2"))
	specs := slices.Repeat([]task.Spec{spec()}, 6)
	specs[4].Program = "a/b"
	ids, err := idsOpened(m.SubmitAll(t.Context(), slices.Values(specs)))
	var sub *SubmissionError
	var bad *SpecError
	if !errors.As(err, &sub) || !errors.As(err, &bad) {
		t.Fatalf("error %v, want a SubmissionError with a SpecError", err)
	}
	if sub.Opened != 4 || len(ids) != 4 || bad.Index != 4 {
		t.Errorf("opened %d, ids %v, index %d, want 4, 4 ids, 4", sub.Opened, ids, bad.Index)
	}
	specs[4].Program = "p"
	ids, err = idsOpened(m.SubmitAll(t.Context(), slices.Values(specs), WithRequestKey(sub.RequestKey)))
	if err != nil || !slices.Equal(ids, []int64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("mended and repeated: %v, %v, want 1..6", ids, err)
	}
}

// What a batch is refused for comes before what is wrong with a task after it, which is looked at meanwhile.
func TestSubmitAllReturnsTheFirstError(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), withSettings("manager.batch_size=2"))
	specs := slices.Repeat([]task.Spec{spec()}, 4)
	if _, err := m.SubmitAll(t.Context(), slices.Values(specs[:1]), WithRequestKey("taken")); err != nil {
		t.Fatal(err)
	}
	specs[2].Program = "a/b"
	ids, err := idsOpened(m.SubmitAll(t.Context(), slices.Values(specs), WithRequestKey("taken")))
	var sub *SubmissionError
	if !errors.Is(err, task.ErrRequestKey) || !errors.As(err, &sub) || sub.Opened != 0 || len(ids) != 0 {
		t.Errorf("ids %v, error %v, want task.ErrRequestKey and nothing opened", ids, err)
	}
}

// A lost reply makes the client send again; nothing is opened twice.
func TestSubmitWithLostReply(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	proxy := srv.Proxy(t)
	host, port, _ := cutAddr(proxy.Addr())
	m := newManager(t, ns, at(host, port))
	mustOpen(t, m, 1, spec())                          // from now on Redis knows the scripts by their hashes
	drop := proxy.DropReply(func(args []string) bool { // the call that opens, and not the reading of the rules before it
		return strings.EqualFold(args[0], "EVALSHA") && slices.Contains(args, ns+":task_id")
	})
	ids := mustOpen(t, m, 3, spec())
	if !drop.Happened() || !slices.Equal(ids, []int64{2, 3, 4}) {
		t.Errorf("drop %v, ids %v, want true, 2 3 4", drop.Happened(), ids)
	}
	if got := srv.Do(t, "GET", ns+":task_id"); got != "4" {
		t.Errorf("task_id = %v, want 4", got)
	}
}
