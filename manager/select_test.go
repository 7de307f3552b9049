package manager

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Every condition, alone and with others, in pages of every size.
func TestSelect(t *testing.T) {
	t.Parallel()
	m := mixed(t)
	full := regexp.MustCompile(`disk full on [16]`)
	for i, c := range []struct {
		sel  Selection
		want []int64
	}{
		{Selection{All: true}, []int64{2, 3, 4, 5, 6, 7}},
		{Selection{All: true, Archived: true}, []int64{1, 2, 3, 4, 5, 6, 7}},
		{Selection{States: []sm.State{sm.Open, sm.Blocked}}, []int64{5, 6, 7}},
		{Selection{States: []sm.State{sm.Archived}}, []int64{1}},
		{Selection{States: []sm.State{sm.Failed}}, []int64{1, 2}},
		{Selection{States: []sm.State{sm.Failed, sm.Open}}, []int64{1, 2, 6, 7}},
		{Selection{States: []sm.State{sm.Succeeded}}, []int64{3}},
		{Selection{States: []sm.State{sm.Succeeded, sm.Archived}}, []int64{1, 3}},
		{Selection{Queue: "q"}, []int64{5}},
		{Selection{Queue: task.DefaultQueue, Program: "p"}, []int64{2, 3, 4, 7}},
		{Selection{Program: "r"}, []int64{6}},
		{Selection{Match: full}, []int64{6}},
		{Selection{Match: full, Archived: true}, []int64{1, 6}},
		{Selection{IDs: []IDRange{{1, 3}, {6, 9}}}, []int64{1, 2, 3, 6, 7, 8, 9}},
		{Selection{IDs: []IDRange{{1, 9}}, Match: full}, []int64{1, 6}},
		{Selection{IDs: []IDRange{{5, 9}}, States: []sm.State{sm.Open}}, []int64{6, 7}},
	} {
		for _, newest := range []bool{false, true} {
			for _, size := range []int{0, 1, 2, 5} {
				c.sel.Newest, c.sel.page = newest, size
				got := idsOf(storetest.All(t, m.Select(t.Context(), c.sel)))
				if slices.Sort(got); !slices.Equal(got, c.want) {
					t.Errorf("case %d, newest %v, pages of %d: %v, want %v", i, newest, size, got, c.want)
				}
			}
		}
	}
}

// Where there are too many tasks to hold their ids, all ids are walked over.
func TestSelectWalks(t *testing.T) {
	t.Parallel()
	m := mixed(t)
	for i, c := range []struct {
		sel  Selection
		want []int64
	}{
		{Selection{All: true}, []int64{2, 3, 4, 5, 6, 7}},
		{Selection{States: []sm.State{sm.Failed}}, []int64{1, 2}},
		{Selection{All: true, Limit: 1}, []int64{2, 3, 4, 5, 6}},
	} {
		var got []int64
		c.sel.page = 2
		s := m.selector(&c.sel, func(page []*task.Task) bool { got = append(got, idsOf(page)...); return true })
		s.held = 1
		if err := s.all(t.Context()); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("case %d: %v, %v, want %v", i, got, err, c.want)
		}
	}
}

// What a list tells of each task, the original's archive included.
func TestSelectSummary(t *testing.T) {
	t.Parallel()
	m := mixed(t)
	srv := redistest.Shared(t)
	srv.Do(t, "ZREM", m.Namespace()+":succeeded", "3") // as the original archives
	srv.Do(t, "ZADD", m.Namespace()+":archived", "1", "3")
	srv.Do(t, "DEL", m.Namespace()+":task:7")
	for _, sel := range []Selection{
		{All: true, Archived: true, Fields: []string{"input"}, page: 3}, {IDs: []IDRange{{1, 7}}, Fields: []string{"input"}, page: 3},
	} {
		byID := map[int64]*task.Task{}
		for _, s := range storetest.All(t, m.Select(t.Context(), sel)) {
			byID[s.ID] = s
		}
		want := map[int64]string{
			1: "archived failed 2 p default", 2: "failed  2 p default", 3: "archived succeeded 1 p default", 4: "running  0 p default",
			5: "blocked  -4 p q", 6: "open  -2 r default", 7: "open  -2  default",
		}
		if sel.IDs != nil {
			want[7] = "  2  default" // nothing lists it that was asked
		}
		for id, text := range want {
			s := byID[id]
			got := fmt.Sprintf("%s %s %d %s %s", s.State, s.Outcome, s.DisbatchStatus(), s.Program, s.Queue)
			if got != text {
				t.Errorf("task %d: %q, want %q", id, got, text)
			}
		}
		if byID[3].Fields["input"] != "ok" || byID[6].Round != 1 {
			t.Errorf("%+v", byID)
		}
	}
	matched := storetest.All(t, m.Select(t.Context(), Selection{Match: regexp.MustCompile("full")}))
	for _, s := range matched {
		if want := fmt.Sprintf("disk full on %d\n", s.ID); s.Rounds[0].Error != want {
			t.Errorf("task %d: error %q, want %q", s.ID, s.Rounds[0].Error, want)
		}
	}
	if len(matched) != 2 {
		t.Errorf("%d matched, want 2", len(matched))
	}
}

// A list has, of each state, those that came last first, and no more than wanted.
func TestSelectNewest(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	mustOpen(t, m, 5, spec())
	worktest.Drain(t, s, worktest.Echo)
	mustOpen(t, m, 5, task.Spec{Program: "q"})
	for i, c := range []struct {
		sel  Selection
		want []int64
	}{
		{Selection{Limit: 2}, []int64{9, 8, 5, 4}},
		{Selection{Limit: 3, Program: "q"}, []int64{9, 8, 7}},
		{Selection{States: []sm.State{sm.Succeeded, sm.Open}, Limit: 1}, []int64{5, 9}},
	} {
		c.sel.Newest, c.sel.All, c.sel.page = true, true, 2
		got := idsOf(storetest.All(t, m.Select(t.Context(), c.sel)))
		if slices.Equal(got, c.want) {
			continue
		}
		// Equal scores are ordered as texts: 10 comes before 9.
		t.Errorf("case %d: %v, want %v", i, got, c.want)
	}
}

// What changes the tasks page by page meets each of them once, and a page never holds more than was asked for.
func TestSelectWhileChanging(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	mustOpen(t, m, 95, spec())
	cancelled := 0
	err := m.EachPage(t.Context(), Selection{States: []sm.State{sm.Open}, page: 10}, func(ids []int64) error {
		changes, err := m.Cancel(t.Context(), ids, ChangeOptions{})
		if len(ids) > 10 {
			t.Errorf("a page of %d tasks", len(ids))
		}
		for _, c := range changes {
			if c.Err != nil {
				t.Errorf("%+v", c)
			}
			cancelled++
		}
		return err
	})
	if err != nil || cancelled != 95 {
		t.Errorf("%d cancelled, want 95; %v", cancelled, err)
	}
}

// Who wants no more tasks costs no more than the page that was read.
func TestSelectStops(t *testing.T) {
	t.Parallel()
	m, calls := countedManager(t, redistest.Namespace(t))
	mustOpen(t, m, 95, spec())
	n := 0
	for range m.Select(t.Context(), Selection{All: true, page: 10}) {
		if n++; n == 11 {
			break
		}
	}
	if n != 11 || calls.looked.Load() != 20 {
		t.Errorf("%d tasks, %d looked at; want 11 and 20", n, calls.looked.Load())
	}
}

// A selection without any condition, or with one that cannot be, is refused.
func TestSelectRefuses(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	for i, c := range []struct {
		field string
		sel   Selection
	}{
		{"all", Selection{}}, {"all", Selection{Archived: true}}, {"all", Selection{All: true, IDs: []IDRange{{1, 2}}}},
		{"ids", Selection{IDs: []IDRange{{0, 2}}}}, {"ids", Selection{IDs: []IDRange{{3, 2}}}},
		{"states", Selection{States: []sm.State{"opn"}}},
		{"limit", Selection{All: true, Limit: -1}},
	} {
		n := 0
		for found, err := range m.Select(t.Context(), c.sel) {
			if n++; found != nil || fieldOf(err) != c.field {
				t.Errorf("case %d: %v, %v", i, found, err)
			}
		}
		if n != 1 {
			t.Errorf("case %d: %d errors", i, n)
		}
	}
}
