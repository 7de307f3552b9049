package store_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

// States are read from their newest task on, or from behind one that need not be there; what is no id is passed over.
func exerciseNewest(t *testing.T, sp *storetest.Space) {
	add := func(state statemachine.State, score float64, members ...string) {
		for _, member := range members {
			sp.Raw.ZAdd(t.Context(), sp.Key(string(state)), redis.Z{Score: score, Member: member})
		}
	}
	add(statemachine.Open, 0, "1", "2", "9", "10", "11", "100")
	add(statemachine.Open, 1764304000.123456, "3")
	add(statemachine.Open, 4e9, "4")
	add(statemachine.Open, 0, "95", "9z", "", "-7", "07", "12345678901234567") // but for 95 no ids
	add(statemachine.Failed, 1764304000.5, "6")
	add(statemachine.Failed, 1764304000.6, "5")
	states := []statemachine.State{statemachine.Open, statemachine.Running, statemachine.Failed}
	const all = "4 3 95 9 2 11 100 10 1 5 6"
	for _, c := range []struct {
		after tasks.Ranked
		most  int
		want  string
	}{
		{tasks.Ranked{}, 100, all}, {tasks.Ranked{}, 11, all}, {tasks.Ranked{}, 3, "4 3 95"}, {tasks.Ranked{}, 10, strings.TrimSuffix(all, " 6")},
		{tasks.Ranked{ID: 3, Score: 1764304000.123456}, 4, "95 9 2 11"}, {tasks.Ranked{ID: 11}, 2, "100 10"},
		{tasks.Ranked{ID: 12}, 2, "11 100"}, {tasks.Ranked{ID: 99}, 2, "95 9"}, {tasks.Ranked{ID: 3, Score: 5}, 1, "95"}, // not there
		{tasks.Ranked{ID: 4, Score: math.Inf(1)}, 2, "4 3"}, {tasks.Ranked{ID: 1}, 5, "5 6"}, {tasks.Ranked{ID: 1, Score: -1}, 5, "5 6"},
	} {
		found, err := sp.Store.Newest(t.Context(), states, c.after, c.most)
		var got []string
		for _, r := range found {
			got = append(got, strconv.FormatInt(r.ID, 10))
			if score := sp.Raw.ZScore(t.Context(), sp.Key(string(r.State)), got[len(got)-1]).Val(); score != r.Score {
				t.Errorf("%+v has the score %v", r, score)
			}
		}
		if text := strings.Join(got, " "); err != nil || text != c.want {
			t.Errorf("%d after %+v: %s, %v, want %s", c.most, c.after, text, err, c.want)
		}
	}
}

// The list of a plan is read backwards, each task at its rank.
func TestPlanTasksBefore(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Raw.RPush(t.Context(), sp.Key("plan_tasks:1"), "3", "4", "x", "7", "8")
	for _, c := range []struct {
		rank, most, first int
		want              []int64
	}{
		{-1, 2, 3, []int64{7, 8}}, {-1, 99, 0, []int64{3, 4, 0, 7, 8}}, {3, 2, 1, []int64{4, 0}}, {1, 2, 0, []int64{3}}, {0, 2, 0, nil},
		{99, 5, 0, nil},
	} {
		ids, first, err := sp.Store.PlanTasksBefore(t.Context(), 1, c.rank, c.most)
		if err != nil || first != c.first || !slices.Equal(ids, c.want) {
			t.Errorf("%d before %d: %v from %d on, %v, want %v from %d on", c.most, c.rank, ids, first, err, c.want, c.first)
		}
	}
	if ids, _, err := sp.Store.PlanTasksBefore(t.Context(), 2, -1, 2); err != nil || ids != nil {
		t.Errorf("no plan: %v, %v", ids, err)
	}
}
