package manager

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// submitJob opens n tasks as a job, in batches of 10.
func submitJob(ctx context.Context, m *Manager, n int, spec task.PlanSpec, opts ...SubmitOption) (task.PlanID, []int64, error) {
	var id task.PlanID
	ids, err := idsOpened(m.SubmitAll(ctx, slices.Values(slices.Repeat([]task.Spec{{Program: "p"}}, n)),
		append(opts, AsJob(spec, func(made task.PlanID) { id = made }))...))
	return id, ids, err
}

// One option makes a job of each submission that it is given to, at the same time too.
func TestJobsByOneOption(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	of := AsJob(task.PlanSpec{Name: "n"}, nil)
	var submissions sync.WaitGroup
	for range 2 {
		submissions.Go(func() {
			if _, err := m.SubmitAll(t.Context(), slices.Values([]task.Spec{{Program: "p"}}), of); err != nil {
				t.Error(err)
			}
		})
	}
	submissions.Wait()
	for id := range task.PlanID(2) {
		if p, err := m.Plan(t.Context(), id+1); err != nil || !p.Job || p.Total != 1 {
			t.Errorf("%+v, %v", p, err)
		}
	}
}

// A submission that was cut short leaves a job whose tasks run; repeated with its key, it finishes it and opens nothing twice, and again
// when the job is over.
func TestJobIsRepeated(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns, withSettings("manager.batch_size=10"))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	why := errors.New("the submitter went away")
	id, ids, err := submitJob(ctx, m, 25, task.PlanSpec{Name: "n"}, WithRequestKey("k"), WithProgress(func(int) { cancel(why) }))
	if err == nil || len(ids) < 10 || len(ids) == 25 || id != 1 {
		t.Fatalf("job %d of %d tasks, %v", id, len(ids), err)
	}
	if p, err := m.Plan(t.Context(), id); err != nil || p.State != task.PlanBuilding || !p.Job || p.Name != "n" {
		t.Errorf("%+v, %v", p, err)
	}
	worktest.Drain(t, worktest.Open(t, ns), worktest.Echo)
	for range 2 {
		again, ids, err := submitJob(t.Context(), m, 25, task.PlanSpec{Name: "n"}, WithRequestKey("k"))
		if err != nil || again != id || len(ids) != 25 || ids[24] != 25 {
			t.Fatalf("repeated: job %d of %v, %v", again, ids, err)
		}
		worktest.Drain(t, worktest.Open(t, ns), worktest.Echo)
	}
	p, err := m.WaitPlan(t.Context(), id, nil)
	if err != nil || p.State != task.PlanCompleted || p.Total != 25 || p.Ended[sm.Succeeded] != 25 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, _, err := submitJob(t.Context(), m, 25, task.PlanSpec{Name: "other"}, WithRequestKey("k")); !errors.Is(err, task.ErrRequestKey) {
		t.Errorf("another job with the same key: %v", err)
	}
}

// Only the submission that has begun a job ends it: one of other tasks with its key is refused, and leaves it as it is.
func TestJobIsNotEndedByAnother(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), withSettings("manager.batch_size=10"))
	ctx, cancel := context.WithCancel(t.Context())
	id, _, err := submitJob(ctx, m, 25, task.PlanSpec{}, WithRequestKey("k"), WithProgress(func(int) { cancel() }))
	if err == nil {
		t.Fatal("it was not cut short")
	}
	other := []task.Spec{{Program: "q"}}
	if _, err := m.SubmitAll(t.Context(), slices.Values(other), WithRequestKey("k"), AsJob(task.PlanSpec{}, nil)); !errors.Is(err, task.ErrRequestKey) {
		t.Errorf("other tasks with the same key: %v", err)
	}
	if again, ids, err := submitJob(t.Context(), m, 25, task.PlanSpec{}, WithRequestKey("k")); err != nil || again != id || len(ids) != 25 {
		t.Errorf("job %d of %v, %v", again, ids, err)
	}
}

// A submission that was refused can be repeated with its key once the cause is mended.
func TestRefusedJobIsRepeated(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns)
	redistest.Shared(t).Do(t, "SET", ns+":open", "no set")
	if _, _, err := submitJob(t.Context(), m, 1, task.PlanSpec{}, WithRequestKey("k")); err == nil {
		t.Fatal("it was not refused")
	}
	redistest.Shared(t).Do(t, "DEL", ns+":open")
	for range 2 {
		if id, ids, err := submitJob(t.Context(), m, 1, task.PlanSpec{}, WithRequestKey("k")); err != nil || id != 1 || !slices.Equal(ids, []int64{1}) {
			t.Errorf("repeated: job %d of %v, %v", id, ids, err)
		}
	}
}

// Tasks that wait for a place are not released by hand; what a person holds keeps its place.
func TestReleaseInAWindow(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	_, ids, err := submitJob(t.Context(), m, 3, task.PlanSpec{Window: 1})
	if err != nil {
		t.Fatal(err)
	}
	storetest.AdvancePlans(t, redisOf(m), 10, true)
	if _, err := m.Hold(t.Context(), ids[:1], ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	storetest.AdvancePlans(t, redisOf(m), 10, true)
	got, err := m.Unhold(t.Context(), ids, ChangeOptions{})
	if err != nil || got[0].After != sm.Open || got[1].After != sm.Blocked || !errors.Is(got[2].Err, task.ErrWaits) {
		t.Errorf("released: %+v, %v", got, err)
	}
}

// What cannot be opened makes no job.
func TestNoJob(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	bad := []task.Spec{{Program: "p", Needs: []task.Need{{Task: 1}}}}
	if _, err := m.SubmitAll(t.Context(), slices.Values(bad), AsJob(task.PlanSpec{}, nil)); fieldOf(err) != "needs" {
		t.Errorf("a need in a job: %v", err)
	}
	if _, err := m.SubmitAll(t.Context(), slices.Values([]task.Spec{}), AsJob(task.PlanSpec{}, nil)); err != nil {
		t.Errorf("no task: %v", err)
	}
	for want, spec := range map[error]task.PlanSpec{task.ErrNoPlan: {After: []task.PlanNeed{{Plan: 7}}}} {
		if _, _, err := submitJob(t.Context(), m, 1, spec); !errors.Is(err, want) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	if _, _, err := submitJob(t.Context(), m, 1, task.PlanSpec{Name: "a\nb"}); fieldOf(err) != "name" {
		t.Errorf("a name of two lines: %v", err)
	}
	if _, _, err := submitJob(t.Context(), m, 1, task.PlanSpec{Window: -1}); fieldOf(err) != "window" {
		t.Errorf("a window below 0: %v", err)
	}
	for p, err := range m.Plans(t.Context()) {
		t.Errorf("there is %+v, %v", p, err)
	}
	if last, err := m.NewestTask(t.Context()); err != nil || last != 0 {
		t.Errorf("task %d was opened, %v", last, err)
	}
}

// What runs is counted for each job.
func TestUnderway(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns)
	first, _, err1 := submitJob(t.Context(), m, 3, task.PlanSpec{})
	second, _, err2 := submitJob(t.Context(), m, 2, task.PlanSpec{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	c, err := worktest.Open(t, ns).Claim(t.Context(), tasks.ClaimRequest{
		Worker: "w", Request: "r", Candidates: storetest.Free(task.Bucket{}), Max: 4,
	})
	if err != nil || len(c.Tasks) != 4 {
		t.Fatalf("%+v, %v", c, err)
	}
	n, err := m.Underway(t.Context())
	if err != nil || n[first] != 3 || n[second] != 1 {
		t.Errorf("running: %v, %v", n, err)
	}
}

// Tasks of a job, and no others, are found by its number, in either order, a limit of each state.
func TestSelectInJob(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), withSettings("manager.batch_size=10"))
	mustOpen(t, m, 3, spec())
	id, ids, err := submitJob(t.Context(), m, 25, task.PlanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	mustOpen(t, m, 3, spec())
	reversed := slices.Clone(ids)
	slices.Reverse(reversed)
	for name, c := range map[string]struct {
		sel  Selection
		want []int64
	}{
		"all":        {Selection{page: 10}, ids},
		"newest":     {Selection{page: 10, Newest: true}, reversed},
		"the newest": {Selection{page: 10, Newest: true, Limit: 12}, reversed[:12]},
		"some state": {Selection{page: 10, States: []sm.State{sm.Running}}, nil},
	} {
		c.sel.Plan = id
		var found []int64
		for one, err := range m.Select(t.Context(), c.sel) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, one.ID)
		}
		if !slices.Equal(found, c.want) {
			t.Errorf("%s: %v, want %v", name, found, c.want)
		}
	}
}

// To look at a job costs the same whatever it has of tasks.
func TestJobOfManyTasks(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	commands := func(ns string, n int) (count int) {
		site := storetest.At(t, storetest.Where(srv), ns, nil)
		m := New(site, "m", Options{})
		id, _, err := submitJob(t.Context(), m, n, task.PlanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		total := regexp.MustCompile(`total_commands_processed:(\d+)`)
		read := func() int {
			n, err := strconv.Atoi(total.FindStringSubmatch(srv.Do(t, "INFO", "stats").(string))[1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := read()
		p, err1 := m.Plan(t.Context(), id)
		_, err2 := m.Underway(t.Context())
		if err := errors.Join(err1, err2); err != nil || p.Left != int64(n) {
			t.Fatalf("%+v, %v", p, err)
		}
		return read() - before
	}
	if few, many := commands("few", 10), commands("many", 5000); few != many {
		t.Errorf("a job of 10 tasks takes %d commands, one of 5000 %d", few, many)
	}
}
