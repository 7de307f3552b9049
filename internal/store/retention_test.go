package store_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// With a task goes everything that is its own, and what is left of it is a count and its id.
func TestPurgeLeavesNothing(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	before := dump(t, sp)
	archivedTasks(t, sp)
	if err := sp.Store.Follow(t.Context(), 2, time.Minute, true); err != nil {
		t.Fatal(err)
	}
	sp.Raw.XAdd(t.Context(), &redis.XAddArgs{Stream: sp.Key("live:2"), Values: []string{"data", "x"}})
	if got := purge(t, sp, 1, 2, 3); !slices.Equal(got, []upkeep.Purged{1, 1, 1}) {
		t.Fatalf("purged: %v", got)
	}
	kept := []string{"meta", "events", "tally:default", "task_id", "purged", "purged_ids", "claim:", "buckets", "wake:", "wake_server", "evidence:p", "node:"}
	for key, content := range dump(t, sp) {
		known := slices.ContainsFunc(kept, func(k string) bool { return strings.HasPrefix(key, k) })
		if _, there := before[key]; !there && !known && !strings.HasPrefix(key, "request:") {
			t.Errorf("left behind: %s = %s", key, content)
		}
	}
	if all, err := sp.Store.PurgedAll(t.Context()); err != nil || !slices.Equal(all, []tasks.Span{{First: 1, Last: 3}}) {
		t.Errorf("ids that are gone: %v, %v", all, err)
	}
	if n, err := sp.Store.PurgedCount(t.Context()); err != nil || !maps.Equal(n, map[statemachine.State]int64{statemachine.Succeeded: 3}) {
		t.Errorf("counted: %v, %v", n, err)
	}
	if _, err := sp.Store.Task(t.Context(), 2); !errors.Is(err, task.ErrPurged) || !errors.Is(err, task.ErrNoTask) {
		t.Errorf("reading a task that is gone: %v", err)
	}
	if _, err := sp.Store.Task(t.Context(), 4); errors.Is(err, task.ErrPurged) || !errors.Is(err, task.ErrNoTask) {
		t.Errorf("reading a task that never was: %v", err)
	}
	if id := archive(t, sp); id != 4 {
		t.Errorf("the next id is %d", id)
	}
}

// A task that another one repeats or replays stays until that one is archived.
func TestPurgeKeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	for name, needs := range map[string]func(*task.Definition){
		"retry":  func(s *task.Definition) { s.RetryOf = 1 },
		"replay": func(s *task.Definition) { s.ReplayOf = 1; storetest.SetArgv(s, "x") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			sp.SetClock(t, noon)
			archivedTasks(t, sp)
			other := sp.Open(t, storetest.Spec(needs))[0]
			if got := purge(t, sp, 1, 2); !slices.Equal(got, []upkeep.Purged{upkeep.PurgeKept, upkeep.PurgeDone}) {
				t.Fatalf("while the other is open: %v", got)
			}
			if ids, _ := outdated(t, sp, "s", keepNone...); !slices.Equal(ids, []int64{3}) {
				t.Errorf("to go while 1 is kept: %v", ids)
			}
			sp.Report(t, &sp.Claim(t, "w", 1)[0], "", "")
			must(t, sp, other, statemachine.Server, statemachine.Settle)
			must(t, sp, other, statemachine.Manager, statemachine.Archive)
			sp.SetClock(t, noon.Add(61*second))
			if ids, _ := outdated(t, sp, "s", keepNone...); !slices.Equal(ids, []int64{1, 3, other}) {
				t.Errorf("to go in the end: %v", ids)
			}
			if got := purge(t, sp, 1); got[0] != upkeep.PurgeDone {
				t.Errorf("in the end: %v", got)
			}
		})
	}
}

// The tasks of a plan stay while it is not over; with the last of them its record goes.
func TestPurgeOfAPlan(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	if _, _, err := sp.Store.KeepIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	plan := newPlan(t, sp, "")
	ids := planned(t, sp, plan, nil, []task.Need{at(0)})
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	c := newCrew(sp)
	c.end(t, ids[0], "", "")
	must(t, sp, ids[0], statemachine.Manager, statemachine.Archive)
	if got := purge(t, sp, ids[0]); got[0] != upkeep.PurgeKept {
		t.Fatalf("while the plan is under way: %v", got)
	}
	drainAll(t, sp)
	c.end(t, ids[1], "", "")
	must(t, sp, ids[1], statemachine.Manager, statemachine.Archive)
	sp.SetClock(t, noon.Add(61*second))
	if left, _ := outdated(t, sp, "s", keepNone...); !slices.Equal(left, ids) {
		t.Fatalf("to go when the plan is over: %v", left)
	}
	purge(t, sp, ids[0])
	sum, err := sp.Store.PlanSum(t.Context(), plan)
	if err != nil || sum.Purged != 1 || sum.PurgedEnded[statemachine.Succeeded] != 1 {
		t.Errorf("plan with a task that is gone: %+v, %v", sum, err)
	}
	purge(t, sp, ids[1])
	if _, err := sp.Store.PlanSum(t.Context(), plan); !errors.Is(err, task.ErrNoPlan) {
		t.Errorf("plan without tasks: %v", err)
	}
	for key := range dump(t, sp) {
		if strings.HasPrefix(key, "plan") && key != "plan_id" {
			t.Errorf("left behind: %s", key)
		}
	}
}

// Only one server at a time is told what is to go; another takes over when that one is silent.
func TestOutdatedTakesTurns(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	archivedTasks(t, sp)
	for _, step := range []struct {
		by   string
		at   statemachine.Time
		mine bool
	}{{"a", noon, true}, {"b", noon.Add(5 * second), false}, {"a", noon.Add(10 * second), true}, {"b", noon.Add(20 * second), false}, {"b", noon.Add(26 * second), true}, {"a", noon.Add(27 * second), false}} {
		sp.SetClock(t, step.at)
		if ids, mine := outdated(t, sp, step.by, keepNone...); mine != step.mine || (len(ids) > 0) != mine {
			t.Errorf("%s at %v: %v, %v", step.by, step.at, ids, mine)
		}
	}
}

// Whatever is archived, retried and purged in whatever order, twice or with an old revision: what is left is what the
// retention says, and what is gone is counted once.
func TestLongRetentionModel(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := newRetentionModel(t, sp)
		rt.Repeat(map[string]func(*rapid.T){
			"archive": func(rt *rapid.T) { m.archive(rapid.Bool().Draw(rt, "failed")) },
			"time":    func(rt *rapid.T) { m.pass(rapid.Int64Range(1, 40).Draw(rt, "seconds")) },
			"retry":   func(rt *rapid.T) { m.retry(rt) },
			"finish":  func(*rapid.T) { m.finish() },
			"purge":   func(rt *rapid.T) { m.purge(rt) },
			"":        m.check,
		})
	})
}

// retentionModel is what a namespace must hold: of all ids those that are gone and when the others were archived.
type retentionModel struct {
	t        *testing.T
	sp       *storetest.Space
	now      statemachine.Time
	archived map[int64]statemachine.Time
	outcome  map[int64]statemachine.State
	gone     map[int64]bool
	repeats  map[int64]int64 // of a task that is kept: the open one that repeats it
	counted  map[statemachine.State]int64
}

// rules keep succeeded tasks for 30 s, and three that failed.
var rules = []upkeep.Retention{
	{Outcome: statemachine.Succeeded, Age: 30 * time.Second, Most: -1}, {Outcome: statemachine.Failed, Most: 3},
}

func newRetentionModel(t *testing.T, sp *storetest.Space) *retentionModel {
	t.Helper()
	for _, key := range sp.Raw.Keys(t.Context(), storetest.Pattern(sp.Namespace)).Val() {
		if key != sp.Key("meta") {
			sp.Raw.Del(t.Context(), key)
		}
	}
	m := &retentionModel{
		t: t, sp: sp, now: noon, archived: map[int64]statemachine.Time{}, outcome: map[int64]statemachine.State{},
		gone: map[int64]bool{}, repeats: map[int64]int64{}, counted: map[statemachine.State]int64{},
	}
	sp.SetClock(t, noon)
	if _, _, err := sp.Store.KeepIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *retentionModel) pass(seconds int64) {
	m.now = m.now.Add(statemachine.Duration(seconds) * second)
	m.sp.SetClock(m.t, m.now)
}

func (m *retentionModel) archive(failed bool) {
	m.t.Helper()
	m.pass(1)
	m.finish()
	m.end(m.sp.Open(m.t, storetest.Spec())[0], failed)
}

// end runs an open task, and archives it.
func (m *retentionModel) end(id int64, failed bool) {
	m.t.Helper()
	text := ""
	m.outcome[id] = statemachine.Succeeded
	if failed {
		text, m.outcome[id] = "no", statemachine.Failed
	}
	m.sp.Report(m.t, &m.sp.Claim(m.t, "w", 1)[0], "", text)
	must(m.t, m.sp, id, statemachine.Server, statemachine.Settle)
	must(m.t, m.sp, id, statemachine.Manager, statemachine.Archive)
	m.archived[id] = m.now
}

func (m *retentionModel) retry(rt *rapid.T) {
	ids := slices.Sorted(maps.Keys(m.archived))
	if len(m.repeats) > 0 || len(ids) == 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(rt, "task")
	if m.sp.Raw.HExists(m.t.Context(), m.sp.Key("task:"+strconv.FormatInt(id, 10)), "retried_by").Val() {
		return
	}
	m.repeats[id] = m.sp.Open(m.t, storetest.Spec(func(s *task.Definition) { s.RetryOf = id }))[0]
}

// finish ends what repeats a task, and waits until that is noticed.
func (m *retentionModel) finish() {
	m.t.Helper()
	for of, id := range m.repeats {
		m.pass(1)
		m.end(id, false)
		delete(m.repeats, of)
		m.pass(61)
	}
}

// purge lets go what is to go, with some calls that must change nothing.
func (m *retentionModel) purge(rt *rapid.T) {
	m.t.Helper()
	ids, _ := outdated(m.t, m.sp, "s", rules...)
	var tasks []upkeep.Outgoing
	for _, id := range ids {
		task := outgoing(m.t, m.sp, id)
		if rapid.IntRange(0, 3).Draw(rt, "old") == 0 {
			task.Rev--
			tasks = append(tasks, task)
			task.Rev++
		}
		tasks = append(tasks, task)
	}
	for range rapid.IntRange(1, 2).Draw(rt, "times") {
		if _, err := m.sp.Store.Purge(m.t.Context(), tasks); err != nil {
			rt.Fatal(err)
		}
	}
	m.expire()
}

// expire does the same in the model.
func (m *retentionModel) expire() {
	byAge := slices.SortedFunc(maps.Keys(m.archived), func(a, b int64) int { return int(m.archived[b] - m.archived[a]) })
	failed := 0
	for _, id := range byAge {
		old := m.now-m.archived[id] > statemachine.Time(30*second)
		if m.outcome[id] == statemachine.Failed {
			if m.repeats[id] != 0 && failed < 3 {
				failed++
				continue
			}
			failed++
			old = failed > 3
		}
		if old && m.repeats[id] == 0 {
			m.gone[id] = true
			m.counted[m.outcome[id]]++
			delete(m.archived, id)
		}
	}
}

// check compares.
func (m *retentionModel) check(rt *rapid.T) {
	m.t.Helper()
	all, err := m.sp.Store.PurgedAll(m.t.Context())
	if err != nil {
		rt.Fatal(err)
	}
	got := map[int64]bool{}
	for i, r := range all {
		if i > 0 && r.First <= all[i-1].Last+1 {
			rt.Fatalf("ranges that are one: %v", all)
		}
		for id := r.First; id <= r.Last; id++ {
			got[id] = true
		}
	}
	if !maps.Equal(got, m.gone) {
		rt.Fatalf("gone: %v, want %v", all, slices.Sorted(maps.Keys(m.gone)))
	}
	if n, err := m.sp.Store.PurgedCount(m.t.Context()); err != nil || !maps.Equal(n, m.counted) {
		rt.Fatalf("counted %v, %v, want %v", n, err, m.counted)
	}
	for id := range m.gone {
		if m.sp.Raw.Exists(m.t.Context(), m.sp.Key("task:"+strconv.FormatInt(id, 10))).Val() != 0 || len(m.sp.Sets(m.t, id)) > 0 {
			rt.Fatalf("task %d is not gone", id)
		}
	}
	for id := range m.archived {
		if !slices.Equal(m.sp.Sets(m.t, id), []statemachine.State{statemachine.Archived}) {
			rt.Fatalf("task %d is not in the archive", id)
		}
	}
}
