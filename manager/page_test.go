package manager

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// paged reads all pages, with a call between each two of them.
func paged(t *testing.T, m *Manager, sel Selection, most int, between func(page []int64)) (all []int64) {
	t.Helper()
	from := ""
	for range 200 {
		found, next, err := m.Page(t.Context(), sel, from, most)
		if err != nil || len(found) > most {
			t.Fatalf("a page of %d tasks, %v", len(found), err)
		}
		page := idsOf(found)
		if all = append(all, page...); next == "" {
			return all
		}
		if strings.Trim(next, "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || len(next) > 60 || next == from {
			t.Fatalf("the cursor %q", next)
		}
		from = next
		if between != nil {
			between(page)
		}
	}
	t.Fatalf("the pages have no end: %v", all[:min(len(all), 50)])
	return nil
}

// Every task that a selection means comes once, by pages of every size, and no other.
func TestPage(t *testing.T) {
	t.Parallel()
	m := mixed(t)
	job, ids, err := submitJob(t.Context(), m, 12, task.PlanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	labelled := map[string]string{"phase": "load"}
	if _, err := m.SetMeta(t.Context(), []int64{1, 3, 5, ids[0], ids[11]}, labelled, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Cancel(t.Context(), ids[3:6], ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Retry(t.Context(), []int64{2}, RetryOptions{}); err != nil {
		t.Fatal(err)
	}
	redistest.Shared(t).Do(t, "DEL", m.Namespace()+":task:"+strconv.FormatInt(ids[7], 10))
	full := regexp.MustCompile(`disk full on [16]`)
	for i, sel := range []Selection{
		{All: true},
		{All: true, Archived: true},
		{All: true, Archived: true, Newest: true, Limit: -1},
		{States: []sm.State{sm.Open, sm.Blocked, sm.Open}},
		{States: []sm.State{sm.Archived}},
		{States: []sm.State{sm.Failed}, Archived: true},
		{States: []sm.State{sm.Failed}, Archived: true, NotRetried: true},
		{States: []sm.State{sm.Cancelled, sm.Succeeded, sm.Archived}},
		{States: []sm.State{sm.Running, sm.Executed}},
		{States: []sm.State{sm.Executed}},
		{Queue: "q"},
		{Queue: task.DefaultQueue, Program: "p", Archived: true},
		{Match: full},
		{Match: full, Archived: true},
		{Meta: labelled, Archived: true},
		{Plan: job, Archived: true},
		{Plan: job, States: []sm.State{sm.Open}},
		{Plan: job, Meta: labelled},
		{Plan: job + 1},
		{IDs: []IDRange{{1, 3}, {6, 9}, {12, 12}, {15, 1 << 60}}},
		{IDs: []IDRange{{5, 9}, {1, 2}}, States: []sm.State{sm.Open}},
		{IDs: []IDRange{{1, 99}}, Match: full},
		{IDs: []IDRange{{98, 99}}},
		{IDs: []IDRange{}},
	} {
		other := sel
		if other.Limit = 0; len(sel.IDs) > 3 { // Select would try each id
			other.IDs = slices.Concat(sel.IDs[:3], []IDRange{{15, 99}})
		}
		want := slices.DeleteFunc(storetest.All(t, m.Select(t.Context(), other)), func(t *task.Task) bool { return t.State == sm.None })
		for _, most := range []int{1, 2, 7, 1000, math.MaxInt} {
			for _, size := range []int{0, 1, 3} {
				sel.page = size
				got := paged(t, m, sel, most, nil)
				slices.Sort(got)
				if diff := cmp.Diff(slices.Sorted(slices.Values(idsOf(want))), got); diff != "" && len(want)+len(got) > 0 {
					t.Errorf("case %d, pages of %d, read by %d (- Select, + Page):\n%s", i, most, size, diff)
				}
			}
		}
	}
}

// A page has the newest first, state by state and by id where a state had them at once; the order of ids is the caller's.
func TestPageOrder(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	job, _, err := submitJob(t.Context(), m, 12, task.PlanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	claim(t, s, 3)
	for i, id := range []string{"2", "3", "1"} {
		redistest.Shared(t).Do(t, "ZADD", ns+":running", fmt.Sprint(1e9+float64(i)), id)
	}
	for i, c := range []struct {
		sel  Selection
		want []int64
	}{
		{Selection{All: true}, []int64{9, 8, 7, 6, 5, 4, 12, 11, 10, 1, 3, 2}}, // 9 is behind 12 as a text
		{Selection{States: []sm.State{sm.Running, sm.Open}}, []int64{1, 3, 2, 9, 8, 7, 6, 5, 4, 12, 11, 10}},
		{Selection{Plan: job}, []int64{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}},
		{Selection{IDs: []IDRange{{8, 9}, {2, 3}}}, []int64{8, 9, 2, 3}},
	} {
		for _, most := range []int{1, 5, 12} {
			if got := paged(t, m, c.sel, most, nil); !slices.Equal(got, c.want) {
				t.Errorf("case %d, pages of %d: %v, want %v", i, most, got, c.want)
			}
		}
	}
}

// The page that has the last tasks says so, and one that is full of them too.
func TestPageIsTheLast(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	job, ids, err := submitJob(t.Context(), m, 10, task.PlanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	for _, sel := range []Selection{{All: true}, {Plan: job}, {IDs: []IDRange{{1, 99}}}, {Program: "p"}} {
		for most, last := range map[int]bool{len(ids) - 1: false, len(ids): true, len(ids) + 1: true} {
			if found, next, err := m.Page(t.Context(), sel, "", most); err != nil || (next == "") != last || len(found) != min(most, len(ids)) {
				t.Errorf("%+v: %d of %d, next %q, %v", sel, len(found), most, next, err)
			}
		}
	}
}

// moving is what happens between two pages of a selection.
type moving struct {
	*Manager

	t    *testing.T
	sel  Selection
	more []SubmitOption
	// moved are the tasks that went to another state.
	moved map[int64]bool
}

func (m *moving) open(n int) []int64 {
	m.t.Helper()
	ids, err := idsOpened(m.SubmitAll(m.t.Context(), slices.Values(slices.Repeat([]task.Spec{spec()}, n)), m.more...))
	if err != nil {
		m.t.Fatal(err)
	}
	return ids
}

// Tasks that are opened between two pages, and those that move, shift nothing for the others: also if the last task of a page is gone,
// from among others of the same score.
func TestPageWhileTasksMove(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(m *moving, page []int64){
		"opened": func(m *moving, _ []int64) { m.open(3) },
		"gone": func(m *moving, page []int64) {
			ids := []int64{page[0], page[len(page)-1]}
			m.moved[ids[0]], m.moved[ids[1]] = true, true
			if _, err := m.Cancel(m.t.Context(), ids, ChangeOptions{}); err != nil {
				m.t.Fatal(err)
			}
		},
		"back": func(m *moving, page []int64) {
			redistest.Shared(m.t).Do(m.t, "ZADD", m.Namespace()+":open", "7", fmt.Sprint(page[len(page)-1]))
		},
	} {
		for kind, sel := range map[string]Selection{
			"state": {States: []sm.State{sm.Open}}, "all": {All: true}, "queue": {Program: "p", Queue: task.DefaultQueue},
			"ids": {IDs: []IDRange{{1, 30}}}, "plan": {Plan: 1},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				m := &moving{Manager: newManager(t, redistest.Namespace(t)), t: t, sel: sel, moved: map[int64]bool{}}
				m.whole(between)
			})
		}
	}
}

// whole reads pages of 30 tasks, with what happens after each of the first five.
func (m *moving) whole(between func(m *moving, page []int64)) {
	m.t.Helper()
	if m.sel.Plan != 0 {
		if _, err := m.NewPlan(m.t.Context(), task.PlanSpec{}); err != nil {
			m.t.Fatal(err)
		}
		m.more = append(m.more, InPlan(m.sel.Plan))
	}
	opened, times, pages := m.open(30), map[int64]int{}, 0
	for _, id := range paged(m.t, m.Manager, m.sel, 4, func(page []int64) {
		if pages++; pages <= 5 {
			between(m, page)
		}
	}) {
		times[id]++
	}
	for _, id := range opened {
		twice := m.moved[id] && m.sel.IDs == nil && m.sel.Plan == 0 // as the documentation says
		if n := times[id]; n != 1 && (n != 2 || !twice) {
			m.t.Errorf("task %d comes %d times", id, n)
		}
	}
}

// A page looks at a bounded number of tasks, in calls of a bounded size, however few fit; the next one goes on there.
func TestPageIsBounded(t *testing.T) {
	t.Parallel()
	m, calls := countedManager(t, redistest.Namespace(t))
	mustOpen(t, m, mostExamined+100, spec())
	rare := mustOpen(t, m, 1, task.Spec{Program: "rare"}) // the last but some as a text
	listed := &listings{namespace: m.store}
	m.store = listed
	sel := Selection{Program: "none"}
	found, next, err := m.Page(t.Context(), sel, "", 20)
	if err != nil || len(found) != 0 || next == "" || calls.looked.Load() != mostExamined || listed.most != defaultPage || listed.calls != 9 {
		t.Errorf("%d found, next %q, %v; %d looked at, %+v", len(found), next, err, calls.looked.Load(), listed)
	}
	calls.looked.Store(0)
	if found, next, err := m.Page(t.Context(), sel, next, 20); err != nil || len(found) != 0 || next != "" || calls.looked.Load() != 101 {
		t.Errorf("the next one: %d found, next %q, %v; %d looked at", len(found), next, err, calls.looked.Load())
	}
	calls.looked.Store(0)
	if found, _, err := m.Page(t.Context(), Selection{All: true}, "", 20); err != nil || len(found) != 20 || calls.looked.Load() != 21 {
		t.Errorf("of all: %d found, %v; %d looked at", len(found), err, calls.looked.Load())
	}
	if got := paged(t, m, Selection{Program: "rare"}, 20, nil); !slices.Equal(got, rare) {
		t.Errorf("the rare one: %v, want %v", got, rare)
	}
}

// listings counts calls, and how many tasks the largest asked for.
type listings struct {
	namespace

	calls, most int
}

func (l *listings) Newest(ctx context.Context, states []sm.State, after tasks.Ranked, most int) ([]tasks.Ranked, error) {
	l.calls, l.most = l.calls+1, max(l.most, most)
	return l.namespace.Newest(ctx, states, after, most)
}

// A page that cannot be, and a cursor that was not made for it, are refused.
func TestPageRefuses(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	job, _, err := submitJob(t.Context(), m, 3, task.PlanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := []Selection{
		{All: true}, {States: []sm.State{sm.Failed}}, {Plan: job}, {Plan: job + 1}, {IDs: []IDRange{{1, 3}}}, {IDs: []IDRange{{2, 3}}},
	}
	cursors := map[int]string{}
	for i, sel := range kinds {
		if _, cursors[i], err = m.Page(t.Context(), sel, "", 1); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(sel Selection, from string, most int, field string) {
		t.Helper()
		if found, next, err := m.Page(t.Context(), sel, from, most); found != nil || next != "" || fieldOf(err) != field {
			t.Errorf("%+v from %q: %d found, next %q, %v, want a refusal of %s", sel, from, len(found), next, err, field)
		}
	}
	for i, sel := range kinds {
		for j, cursor := range cursors {
			if i != j && cursor != "" && (i != 4 || j != 5) {
				refused(sel, cursor, 1, "cursor")
			}
		}
		for _, text := range []string{"7", "b3Blbg", cursors[0] + "A", cursors[0] + "\n"} {
			refused(sel, text, 1, "cursor")
		}
		refused(sel, place{"open", math.NaN(), 1}.text(), 1, "cursor")
		refused(sel, place{"open", 0, 0}.text(), 1, "cursor")
		refused(sel, "", 0, "most")
	}
	for _, at := range []float64{-1, 0.5, math.Inf(1), 1 << 60} {
		refused(kinds[2], place{planPlaces(job), at, 1}.text(), 1, "cursor")
		refused(kinds[4], place{idPlaces, at, 1}.text(), 1, "cursor")
	}
	refused(Selection{}, "", 1, "all")
	refused(Selection{States: []sm.State{"opn"}}, "", 1, "states")
}

func FuzzPlace(f *testing.F) {
	for _, at := range []place{
		{"open", 0, 7}, {"failed", 1764304000.123456, 10}, {"open", math.Inf(-1), 1}, {"plan7", 12, 0}, {idPlaces, 1, 3},
	} {
		f.Add(at.text())
	}
	f.Add("")
	f.Add("b3BlbiAwIDc\n")
	selections := []Selection{{All: true}, {Plan: 7}, {IDs: []IDRange{{1, 3}, {3, 1 << 62}}}}
	f.Fuzz(func(t *testing.T, text string) {
		at, ok := parsePlace(text)
		if !ok {
			return
		}
		if again, ok := parsePlace(at.text()); !ok || again != at || at.text() != text {
			t.Fatalf("%q: %+v, then %+v", text, at, again)
		}
		kinds := 0
		for i := range selections {
			if (&Manager{}).pager(&selections[i]).has(at) {
				kinds++
			}
		}
		if kinds > 1 {
			t.Fatalf("%q: %+v is a place of %d selections", text, at, kinds)
		}
	})
}
