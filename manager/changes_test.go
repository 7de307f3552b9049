package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// entries are those of the log of changes, the oldest first, without times.
func entries(t *testing.T, m *Manager) (list []string) {
	t.Helper()
	for e, err := range m.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.At.IsZero() || e.Damaged {
			t.Errorf("%+v", e)
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s: %s %s *%d %s %s", e.By, e.What, e.On, e.Count, e.Reason, e.Request)))
	}
	slices.Reverse(list)
	return list
}

// changing are calls that change something, by the methods that take ChangeOptions, and what the log of changes says of each.
var changing = []struct {
	method, want string
	do           func(ctx context.Context, m *Manager, o ChangeOptions) error
}{
	{"Cancel", "cancel 2 *1", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		return second(m.Cancel(ctx, []int64{1, 2}, o))
	}},
	{"CancelWaiting", "cancel 3 *1", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		return second(m.CancelWaiting(ctx, []int64{3}, o))
	}},
	{"Hold", "hold 4-6 *3", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		return second(m.Hold(ctx, []int64{4, 5, 6, 99}, o))
	}},
	{"Unhold", "release 4 *1", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		return second(m.Unhold(ctx, []int64{4}, o))
	}},
	{"SetMeta", "attr 1,5 *2", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		return second(m.SetMeta(ctx, []int64{1, 5}, map[string]string{"a": "SECRET"}, o))
	}},
	{"SetParams", "params 5 *1", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		return second(m.SetParams(ctx, []int64{1, 5}, json.RawMessage(`{"a":"SECRET"}`), o))
	}},
	{"Retry", "retry 1 *1", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		return second(m.Retry(ctx, []int64{1, 4}, RetryOptions{ChangeOptions: o}))
	}},
	{"Replay", "replay 1 *1", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		return second(m.Replay(ctx, 1, LastRound, o))
	}},
	{"HoldPlan", "plan hold j1 *1", func(ctx context.Context, m *Manager, o ChangeOptions) error { return m.HoldPlan(ctx, 1, o) }},
	{"CancelPlan", "plan cancel j1 *1", func(ctx context.Context, m *Manager, o ChangeOptions) error { return m.CancelPlan(ctx, 1, o) }},
	{"RetryPlan", "plan retry j2 *1", func(ctx context.Context, m *Manager, o ChangeOptions) error { return second(m.RetryPlan(ctx, 2, o)) }},
	{"AddQueue", "queue add q *1", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		return second(m.AddQueue(ctx, task.QueueSpec{Name: "q"}, o))
	}},
	{"SetQueue", "queue set q *1", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		return second(m.SetQueue(ctx, "q", func(q *task.QueueSpec) error { return q.Set("paused", "true") }, o))
	}},
	{"RemoveQueue", "queue rm q *1", func(ctx context.Context, m *Manager, o ChangeOptions) error { return m.RemoveQueue(ctx, "q", o) }},
	{"SetNode", "node set n *1", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		return second(m.SetNode(ctx, "n", func(n *task.NodeRecord) error { return n.Set("maxthreads", "1") }, o))
	}},
	{"RemoveNode", "node rm n *1", func(ctx context.Context, m *Manager, o ChangeOptions) error { return m.RemoveNode(ctx, "n", o) }},
	{"NewToken", "token add ci *1", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		_, _, err := m.NewToken(ctx, task.TokenSpec{Name: "ci", Role: task.TokenRead}, o)
		return err
	}},
	{"RevokeToken", "token rm ci *1", func(ctx context.Context, m *Manager, o ChangeOptions) error { return m.RevokeToken(ctx, "ci", o) }},
	{"Logged", "series run a,b *2", func(ctx context.Context, m *Manager, o ChangeOptions) error {
		return m.Logged(ctx, "series run", "", o, func(ctx context.Context) error {
			for _, name := range []string{"b", "a", "b"} { // records that differ, so that each is written
				if o.DryRun {
					return nil
				}
				r, _ := m.Record(ctx, task.KindSeries, name)
				r.Kind, r.Name = task.KindSeries, name
				if _, err := m.WriteRecord(ctx, r, RecordTasks{}); err != nil {
					return err
				}
			}
			return nil
		})
	}},
}

func second[T any](_ T, err error) error { return err }

// changeable is a namespace where all of these change something: task 1 has failed, plan 1 has one that waits, plan 2 one that was cancelled.
func changeable(t *testing.T) *Manager {
	t.Helper()
	ns := redistest.Namespace(t)
	m := newManager(t, ns)
	mustOpen(t, m, 1, task.Spec{Program: "p", Input: "SECRET", Timeout: 60})
	worktest.Drain(t, worktest.Open(t, ns), worktest.Echo)
	mustOpen(t, m, 5, task.Spec{Program: "p", Input: "SECRET"})
	for id := task.PlanID(1); id <= 2; id++ {
		if made, err := m.NewPlan(t.Context(), task.PlanSpec{}); err != nil || made != id {
			t.Fatal(made, err)
		}
		opened, err := m.SubmitAll(t.Context(), slices.Values([]task.Spec{{Program: "p"}}), InPlan(id))
		if err == nil {
			err = m.ReadyPlan(t.Context(), id)
		}
		if err == nil && id == 2 {
			_, err = m.Cancel(t.Context(), task.IDs(opened), ChangeOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// Each call that takes ChangeOptions leaves one entry that says who has changed what, and a dry run none. Who changes something of its own
// and says no name leaves none.
func TestEachChangeLeavesAnEntry(t *testing.T) {
	t.Parallel()
	m := changeable(t)
	if got := entries(t, m); len(got) > 0 {
		t.Errorf("of a program's own changes: %q", got)
	}
	n := 0
	for _, c := range changing {
		for _, dry := range []bool{true, false} {
			o := ChangeOptions{By: "ann@host", Reason: "because", DryRun: dry}
			if err := c.do(WithCaller(t.Context(), "token ci", "r-1"), m, o); err != nil {
				t.Errorf("%s, dry %v: %v", c.method, dry, err)
			}
			got := entries(t, m)
			switch want := "ann@host: " + c.want + " because r-1"; {
			case dry && len(got) > n:
				t.Errorf("a dry run of %s left %q", c.method, got[n:])
			case !dry && (len(got) != n+1 || got[n] != want):
				t.Errorf("%s left %q, want %q", c.method, got[n:], want)
			}
			n = len(got)
		}
	}
	for _, text := range redisOf(m).Redis.LRange(t.Context(), redisOf(m).Keys.Changes(), 0, -1).Val() {
		if strings.Contains(text, "SECRET") {
			t.Error(text)
		}
	}
	methods := reflect.TypeFor[*Manager]()
	for method := range methods.Methods() {
		for in := range method.Type.Ins() {
			if in != reflect.TypeFor[ChangeOptions]() && in != reflect.TypeFor[RetryOptions]() {
				continue
			}
			if !slices.ContainsFunc(changing, func(c struct {
				method, want string
				do           func(context.Context, *Manager, ChangeOptions) error
			}) bool {
				return c.method == method.Name
			}) {
				t.Errorf("no case for %s", method.Name)
			}
		}
	}
}

// What changes something without ChangeOptions leaves an entry where the context has a caller; a submission leaves none.
func TestChangesOfACaller(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	ctx := WithCaller(t.Context(), "token ci", "r-2")
	if _, err := m.Submit(ctx, spec()); err != nil {
		t.Fatal(err)
	}
	keyed := []task.Spec{{Program: "p", Key: "a"}, {Program: "p", Key: "b"}, {Program: "p", Key: "c"}}
	for range 2 { // the second time nothing is opened
		if _, err := m.SubmitAll(ctx, slices.Values(keyed), AsJob(task.PlanSpec{}, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Cancel(ctx, []int64{77}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	id, err := m.NewPlan(ctx, task.PlanSpec{})
	if err == nil {
		err = m.ReadyPlan(ctx, id)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Cancel(WithCaller(ctx, "", ""), []int64{1}, ChangeOptions{By: "series"}); err != nil {
		t.Fatal(err)
	}
	r, err := m.WriteRecord(ctx, task.Record{Kind: task.KindSeries, Name: "nightly"}, RecordTasks{})
	if err == nil {
		err = m.RemoveRecord(ctx, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{"series set nightly *1", "series rm nightly *1", "flush " + m.Namespace() + " *1"}
	got := entries(t, m)
	for i := range want {
		want[i] = "token ci: " + want[i] + "  r-2"
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// An entry has room for so many ids; one that cannot be made is an error that says that the change stands.
func TestEntryOfManyTasks(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	mustOpen(t, m, 200, spec())
	var odd []int64
	for id := int64(1); id < 200; id += 2 {
		odd = append(odd, id)
	}
	if _, err := m.Hold(t.Context(), odd, ChangeOptions{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	for e, err := range m.Changes(t.Context(), 0) {
		if err != nil || e.Count != 100 || len(e.On) > 210 || !strings.HasSuffix(e.On, ",...") || !e.Concerns("3") || e.Concerns("4") {
			t.Errorf("%+v, %v", e, err)
		}
	}
	redisOf(m).Redis.Del(t.Context(), redisOf(m).Keys.Changes())
	redisOf(m).Redis.Set(t.Context(), redisOf(m).Keys.Changes(), "x", 0)
	done, err := m.Hold(t.Context(), []int64{2}, ChangeOptions{By: "ann"})
	if err == nil || !strings.Contains(err.Error(), "what was changed stands") || len(done) != 1 || done[0].After != "blocked" {
		t.Errorf("%+v, %v", done, err)
	}
}
