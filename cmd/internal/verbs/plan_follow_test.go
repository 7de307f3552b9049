package verbs

import (
	"cmp"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// session is one as a verb has it.
func (b *bench) session() *session {
	b.t.Helper()
	m, err := manager.New(b.t.Context(), "tdf-manager", b.file, manager.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = m.Close() })
	return &session{store: b.store, manager: m}
}

// openPlan makes a ready plan of n tasks that need nothing.
func openPlan(t *testing.T, s *session, n int) (plan int64) {
	t.Helper()
	plan, err := s.manager.NewPlan(t.Context(), manager.PlanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	specs := slices.Repeat([]manager.Spec{{Program: "p", Source: "s", Input: "x"}}, n)
	if _, err := s.manager.OpenAll(t.Context(), slices.Values(specs), manager.InPlan(plan)); err != nil {
		t.Fatal(err)
	}
	if err := s.manager.ReadyPlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	storetest.DrainPlans(t, s.store, n, true)
	return plan
}

func follow(t *testing.T, s *session, plan int64) *planFollow {
	t.Helper()
	f, err := s.followPlan(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// again looks once more, as the display does.
func (f *planFollow) again(t *testing.T, s *session, plan int64) *outlook {
	t.Helper()
	p, err := s.manager.Plan(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.look(t.Context(), s, p.Left); err != nil {
		t.Fatal(err)
	}
	return f.outlook(p.OnFailure)
}

// agrees compares what is known with what stands in Redis.
func (f *planFollow) agrees(t *testing.T, s *session, plan int64) {
	t.Helper()
	all, err := s.plannedTasks(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	sortID := func(list []*planned) []*planned {
		return slices.SortedFunc(slices.Values(list), func(a, b *planned) int { return cmp.Compare(a.id, b.id) })
	}
	stamps := gocmp.Comparer(func(a, b statemachine.Time) bool { // an event is a little later than the stamp of its script
		return (a == 0) == (b == 0) && max(a-b, b-a) < 60*statemachine.Time(statemachine.Second)
	})
	if diff := gocmp.Diff(sortID(all), sortID(f.graph.tasks), gocmp.AllowUnexported(planned{}), stamps); diff != "" {
		t.Errorf("-in Redis +known:\n%s", diff)
	}
}

const gated = `defaults: {retry_delay: 0, max_fails: 0}
steps:
  fetch: {program: echo, input: a}
  work: {program: gate, foreach: [a, b, c], needs: fetch}
  join: {program: echo, needs: work}
`

// TestPlanFollow is about a plan that runs, of which only the events are read.
func TestPlanFollow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	crew, s := b.planCrew(), b.session()
	b.must("plan", "submit", planFile(t, gated))
	f := follow(t, s, 1)
	f.swept = time.Now().Add(time.Hour) // nothing is read twice
	var o *outlook
	wait.Eventually(t, time.Minute, func() bool {
		o = f.again(t, s, 1)
		return o.states[statemachine.Running] == 2 && o.states[statemachine.Open] == 1
	}, "two tasks do not run")
	f.agrees(t, s, 1)
	if !o.Timed || !o.known || o.Tasks != 4 || o.slots != 2 || !regexp.MustCompile(`^work\[\d\] -> join \(.+\)$`).MatchString(o.pathText()) {
		t.Errorf("%+v: %s", o, o.pathText())
	}
	if got := o.runningSteps(); !regexp.MustCompile(`^work\[\d\] for [^,]+, work\[\d\] for [^,]+$`).MatchString(got) {
		t.Error(got)
	}
	shown := b.must("plan", "show", "1")
	wantText(t, shown, " left\n", "critical path  work[", " -> join (")
	object := b.value(0, "plan", "show", "1").(map[string]any)["estimate"].(map[string]any)
	path := object["critical_path"].([]any)
	if len(path) != 2 || path[1].(map[string]any)["step"] != "join" || object["to_run"] != 4.0 || object["left"] == nil || object["slots"] != 2.0 {
		t.Errorf("%v", object)
	}
	crew.open()
	wait.Eventually(t, time.Minute, func() bool {
		o = f.again(t, s, 1)
		return o.Tasks == 0
	}, "the plan does not end")
	f.agrees(t, s, 1)
	if o.String() != "" || b.value(0, "plan", "show", "1").(map[string]any)["estimate"] != nil {
		t.Errorf("%q is left of a plan that is over", o)
	}
}

// TestPlanFollowRetry is about a plan that grows: the retry takes the place of what it repeats.
func TestPlanFollowRetry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	crew, s := b.planCrew(), b.session()
	if r := b.run("plan", "run", "-q", planFile(t, broken)); r.code != 1 || r.out != "1\n" || r.err != "" {
		t.Errorf("%+v", r)
	}
	f := follow(t, s, 1)
	if o := f.again(t, s, 1); o.Tasks != 0 {
		t.Errorf("%d are to run of a plan that failed", o.Tasks)
	}
	crew.mended.Store(true)
	b.must("plan", "retry", "1")
	b.planState("1", "completed")
	wait.Eventually(t, time.Minute, func() bool { return f.again(t, s, 1).states[statemachine.Succeeded] == 4 }, "the retries are not seen")
	f.agrees(t, s, 1)
}

// TestPlanFollowWithoutEvents reads again what it is not told of: where the stream is off, and where events are gone.
func TestPlanFollowWithoutEvents(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(b *bench){
		"off":     func(b *bench) { _ = b.store.PublishEvents(b.t.Context(), 0) },
		"gone":    func(b *bench) { b.srv.Do(b.t, "XTRIM", b.ns+":events", "MAXLEN", "1") },
		"emptied": func(b *bench) { b.srv.Do(b.t, "XTRIM", b.ns+":events", "MAXLEN", "0") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.session()
			plan := openPlan(t, s, 5)
			f := follow(t, s, plan)
			worktest.Drain(t, s.store, worktest.Echo)
			lose(b)
			if o := f.again(t, s, plan); o.Tasks != 0 {
				t.Errorf("%d are to run", o.Tasks)
			}
			f.agrees(t, s, plan)
		})
	}
}

// TestPlanFollowByTheCount is about a server that moves tasks and makes no events: nothing happens, as it seems, but the
// plan counts other ends.
func TestPlanFollowByTheCount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.session()
	plan := openPlan(t, s, 5)
	f := follow(t, s, plan)
	worktest.Drain(t, s.store, worktest.Echo)
	var err error
	if _, f.after, err = s.store.EventSpan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range quietLooks - 1 {
		if o := f.again(t, s, plan); o.Tasks != 5 {
			t.Errorf("%d are to run", o.Tasks)
		}
	}
	if o := f.again(t, s, plan); o.Tasks != 0 {
		t.Errorf("%d are to run", o.Tasks)
	}
	f.agrees(t, s, plan)
}

// TestPlanFollowReadsLittle counts what it costs Redis to look at a plan again.
func TestPlanFollowReadsLittle(t *testing.T) {
	t.Parallel()
	b := &bench{t: t, ns: redistest.Namespace(t), srv: redistest.Start(t)}
	b.store, b.file = b.dial(), writeConfig(t, b.srv.Socket(), b.ns)
	s := b.session()
	plan := openPlan(t, s, 3*page)
	f := follow(t, s, plan)
	cost := func(o *outlook, moved int64) {
		t.Helper()
		if o.states[statemachine.Succeeded] != moved {
			t.Errorf("%v, want %d succeeded", o.states, moved)
		}
		stats := b.srv.Do(t, "INFO", "commandstats").(string)
		for _, command := range []string{"hmget", "hgetall", "xrange", "xrevrange", "lrange"} {
			if n := callsOf(t, stats, command); n > 12 {
				t.Errorf("%d calls of %s", n, command)
			}
		}
	}
	b.srv.Do(t, "CONFIG", "RESETSTAT")
	for range 5 {
		f.again(t, s, plan)
	}
	cost(f.again(t, s, plan), 0)
	worktest.Drain(t, s.store, worktest.Echo)
	b.srv.Do(t, "CONFIG", "RESETSTAT")
	cost(f.again(t, s, plan), 3*page)
}

// callsOf reads how often a command was called.
func callsOf(t *testing.T, stats, command string) int {
	t.Helper()
	_, rest, found := strings.Cut(stats, "cmdstat_"+command+":calls=")
	if !found {
		return 0
	}
	text, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
