package server

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A stray is taken out in the pass after the one that found it, if it is one still; each pass looks at a part of the indices, and
// laps have a pause between them.
func TestStraysStandStill(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, func(o *options) { o.RepairBatch, o.RepairInterval = 1, time.Hour })
	k, due := keeperOf(s), sp.Key("due")
	tidy := func() {
		t.Helper()
		if err := k.tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	plant := func(member string) { sp.Raw.ZAdd(t.Context(), due, redis.Z{Score: 8e9, Member: member}) }
	there := func(member string) bool { return sp.Raw.ZScore(t.Context(), due, member).Err() == nil }
	plant("zz")
	plant("77")
	tidy()
	if all := len(k.lap.indices); all < 5 || !there("zz") || !there("77") {
		t.Errorf("after one pass %d indices are left, zz %v, 77 %v", all, there("zz"), there("77"))
	}
	sp.Raw.HSet(t.Context(), sp.Key("task:77"), "state", "open")
	tidy()
	if there("zz") || !there("77") {
		t.Errorf("after two passes: zz %v, 77 %v, which belongs there by now", there("zz"), there("77"))
	}
	if n := s.Stats().Repairs; n != 1 {
		t.Errorf("%d repairs, want 1", n)
	}
	for len(k.lap.indices) > 0 || !k.lap.over {
		tidy()
	}
	plant("zz")
	tidy()
	tidy()
	if !there("zz") {
		t.Error("a lap has begun at once")
	}
	k.lap.began = time.Now().Add(-lapPause * s.opt.RepairInterval)
	tidy()
	tidy()
	if there("zz") {
		t.Error("the next lap has not begun")
	}
}

// Servers of a release that knows no jobs end tasks of jobs without counting them. A lap counts again, and a job of which nothing is left
// is over. One that counts right is not touched.
func TestJobIsCountedAgain(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, func(o *options) { o.RepairBatch, o.RepairInterval = 1, time.Hour })
	k := keeperOf(s)
	goRound := func() {
		t.Helper()
		for k.lap = (lap{}); !k.lap.over || len(k.lap.indices) > 0; {
			if err := k.tidy(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	job := func(inputs ...string) task.PlanID {
		t.Helper()
		id, err := sp.Store.NewPlan(t.Context(), task.PlanSpec{Job: true, RequestKey: inputs[0]})
		var specs []task.Definition
		for _, input := range inputs {
			specs = append(specs, storetest.Define("input", input, "archive", task.ArchiveAtOnce, "hold", map[bool]string{true: "later"}[input == "held"]))
		}
		if err == nil {
			_, err = sp.Store.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: specs, Plan: id, Job: true})
		}
		if err == nil {
			_, err = sp.Store.SteerPlan(t.Context(), id, task.PlanReady, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	play := func(c *tasks.Claimed) worktest.Result {
		if c.Spec.Input == "fail" {
			return worktest.Fail(c)
		}
		return worktest.Result{}
	}
	key := func(id task.PlanID) string { return sp.Key(fmt.Sprint("plan:", id)) }
	over, open := job("a", "fail", "b"), job("c", "fail", "held")
	before := map[task.PlanID]map[string]string{}
	for _, id := range []task.PlanID{over, open} {
		before[id] = sp.Raw.HGetAll(t.Context(), key(id)).Val()
	}
	worktest.Drain(t, sp.Store, play)
	for id, fields := range before {
		sp.Raw.Del(t.Context(), key(id))
		sp.Raw.HSet(t.Context(), key(id), fields)
	}
	right := job("never run")
	seq := func() string { return sp.Raw.HGet(t.Context(), sp.Key("meta"), "seq").Val() }
	goRound()
	for id, want := range map[task.PlanID]task.Plan{
		over: {State: task.PlanFailed, Left: 0, Failures: []int64{2}}, open: {State: task.PlanReady, Left: 1, Failures: []int64{5}}, right: {State: task.PlanReady, Left: 1},
	} {
		p, err := sp.Store.Plan(t.Context(), id)
		if err != nil || p.State != want.State || p.Left != want.Left || !slices.Equal(p.Failures, want.Failures) ||
			p.Ended[sm.Succeeded]+p.Ended[sm.Failed]+p.Left != p.Total {
			t.Errorf("job %d: %+v, %v", id, p, err)
		}
	}
	is := seq()
	if goRound(); seq() != is {
		t.Error("a second lap has changed something")
	}
	if r, err := audit.Verify(t.Context(), sp.Store); err != nil || !r.OK() {
		t.Errorf("%+v, %v", r.Violations, err)
	}
}
