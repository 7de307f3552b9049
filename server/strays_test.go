package server

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
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
