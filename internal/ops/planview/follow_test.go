package planview

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// open is a view on a ready plan of n tasks that need nothing.
func open(t *testing.T, srv *redistest.Server, ns string, n int) *View {
	t.Helper()
	st, err := store.Dial(storetest.Where(srv), ns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	v := &View{Store: st}
	if v.Plan, err = st.NewPlan(t.Context(), task.PlanSpec{RequestKey: "plan"}); err != nil {
		t.Fatal(err)
	}
	specs := slices.Repeat([]task.Definition{storetest.Spec()}, n)
	for page := range slices.Chunk(specs, plans.PlanTasks) {
		if _, err := st.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: page, Plan: v.Plan}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.SteerPlan(t.Context(), v.Plan, task.PlanReady, ""); err != nil {
		t.Fatal(err)
	}
	storetest.AdvancePlans(t, st, n, true)
	return v
}

func (v *View) follow(t *testing.T) *Follower {
	t.Helper()
	f, err := v.Follow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// redis is the store of the view, for what servers and workers ask of it.
func (v *View) redis() *store.Store { return v.Store.(*store.Store) }

// again looks once more, as a display does.
func (f *Follower) again(t *testing.T) *Outlook {
	t.Helper()
	p, err := f.view.Store.Plan(t.Context(), f.view.Plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Look(t.Context(), p.Left); err != nil {
		t.Fatal(err)
	}
	return f.Outlook(p.OnFailure)
}

// agrees compares what is known with what stands in Redis.
func (f *Follower) agrees(t *testing.T) {
	t.Helper()
	all, err := f.view.Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sortID := func(list []*Task) []*Task {
		return slices.SortedFunc(slices.Values(list), func(a, b *Task) int { return cmp.Compare(a.ID, b.ID) })
	}
	stamps := gocmp.Comparer(func(a, b statemachine.Time) bool { // an event is a little later than the stamp of its script
		return (a == 0) == (b == 0) && max(a-b, b-a) < 60*statemachine.Time(statemachine.Second)
	})
	if diff := gocmp.Diff(sortID(all), sortID(f.Tasks()), stamps); diff != "" {
		t.Errorf("-in Redis +known:\n%s", diff)
	}
}

// Events alone tell what has become of the tasks: none is read a second time.
func TestFollowByEvents(t *testing.T) {
	t.Parallel()
	v := open(t, redistest.Shared(t), redistest.Namespace(t), 5)
	f := v.follow(t)
	f.swept = time.Now().Add(time.Hour) // nothing is read twice
	worktest.Drain(t, v.redis(), worktest.Echo)
	if o := f.again(t); o.ToRun != 0 || o.States[statemachine.Succeeded] != 5 {
		t.Errorf("%d are to run, %v", o.ToRun, o.States)
	}
	f.agrees(t)
}

// TestFollowWithoutEvents reads again what it is not told of: where the stream is off, and where events are gone.
func TestFollowWithoutEvents(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(v *View, srv *redistest.Server, ns string){
		"off":     func(v *View, _ *redistest.Server, _ string) { _ = v.redis().PublishEvents(t.Context(), 0) },
		"gone":    func(_ *View, srv *redistest.Server, ns string) { srv.Do(t, "XTRIM", ns+":events", "MAXLEN", "1") },
		"emptied": func(_ *View, srv *redistest.Server, ns string) { srv.Do(t, "XTRIM", ns+":events", "MAXLEN", "0") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, ns := redistest.Shared(t), redistest.Namespace(t)
			v := open(t, srv, ns, 5)
			f := v.follow(t)
			worktest.Drain(t, v.redis(), worktest.Echo)
			lose(v, srv, ns)
			if o := f.again(t); o.ToRun != 0 {
				t.Errorf("%d are to run", o.ToRun)
			}
			f.agrees(t)
		})
	}
}

// TestFollowByTheCount is about a server that moves tasks and makes no events: nothing happens, as it seems, but the
// plan counts other ends.
func TestFollowByTheCount(t *testing.T) {
	t.Parallel()
	v := open(t, redistest.Shared(t), redistest.Namespace(t), 5)
	f := v.follow(t)
	worktest.Drain(t, v.redis(), worktest.Echo)
	var err error
	if _, f.after, err = v.Store.EventSpan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range quietLooks - 1 {
		if o := f.again(t); o.ToRun != 5 {
			t.Errorf("%d are to run", o.ToRun)
		}
	}
	if o := f.again(t); o.ToRun != 0 {
		t.Errorf("%d are to run", o.ToRun)
	}
	f.agrees(t)
}

// TestFollowReadsLittle counts what it costs Redis to look at a plan again.
func TestFollowReadsLittle(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	v := open(t, srv, redistest.Namespace(t), 3*page)
	f := v.follow(t)
	cost := func(o *Outlook, moved int64) {
		t.Helper()
		if o.States[statemachine.Succeeded] != moved {
			t.Errorf("%v, want %d succeeded", o.States, moved)
		}
		stats := srv.Do(t, "INFO", "commandstats").(string)
		for _, command := range []string{"hmget", "hgetall", "xrange", "xrevrange", "lrange"} {
			if n := callsOf(t, stats, command); n > 12 {
				t.Errorf("%d calls of %s", n, command)
			}
		}
	}
	srv.Do(t, "CONFIG", "RESETSTAT")
	for range 5 {
		f.again(t)
	}
	cost(f.again(t), 0)
	worktest.Drain(t, v.redis(), worktest.Echo)
	srv.Do(t, "CONFIG", "RESETSTAT")
	cost(f.again(t), 3*page)
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

func TestServedBy(t *testing.T) {
	t.Parallel()
	of := servedBy([]task.Worker{
		{Registration: task.Registration{Slots: 4}, State: task.WorkerReady},
		{Registration: task.Registration{Slots: 9}, State: task.WorkerLost},
		{Registration: task.Registration{Slots: 3}, State: task.WorkerReady},
	})
	for _, c := range [][3]int{{0, 0, 7}, {0, 5, 7}, {2, 0, 7}, {2, 5, 2}, {9, 0, 9}} {
		if got := of(c[0], c[1]); got != c[2] {
			t.Errorf("%d run and %d are open: %d slots, want %d", c[0], c[1], got, c[2])
		}
	}
	var p peaks
	p.of(0)
	for range 3 { // each runs and ends between two looks
		p.moved(statemachine.Open, statemachine.Running)
		p.moved(statemachine.Open, statemachine.Running)
		p.moved(statemachine.Running, statemachine.Executed)
		p.moved(statemachine.Running, statemachine.Executed)
	}
	for i := range manyLooks + 1 {
		if got, want := p.of(0), map[bool]int{true: 2, false: 0}[i < manyLooks]; got != want {
			t.Errorf("%d at look %d, want %d", got, i, want)
		}
	}
}
