package store_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/statemachine"
)

// check is what must hold after every step.
func (w *twins) check(rt *rapid.T) {
	ids := w.ids()
	tasks, err := w.sp.Store.TasksByID(w.t.Context(), ids)
	if err != nil {
		rt.Fatal(err)
	}
	for i, id := range ids {
		want := w.tasks[id]
		if tasks[i] == nil || tasks[i].Err != nil {
			rt.Fatalf("task %d is lost: %+v", id, tasks[i])
		}
		got := tasks[i].Task
		got.Past, got.Current.End = want.Past, statemachine.Event(tasks[i].Fields[statemachine.RoundField(got.Round, "end")])
		if diff := diffTask(want.Task, got); diff != "" {
			rt.Fatalf("task %d (- model, + redis):\n%s", id, diff)
		}
		if tasks[i].Bucket != want.bucket {
			rt.Fatalf("task %d is of bucket %+v", id, tasks[i].Bucket)
		}
		if want.State == statemachine.Running && (tasks[i].Worker != want.worker || tasks[i].Incarnation != want.incarnation) {
			rt.Fatalf("task %d runs under %s, %d", id, tasks[i].Worker, tasks[i].Incarnation)
		}
		w.checkStamps(rt, want, tasks[i].Fields)
	}
	w.checkSets(rt)
	w.checkDue(rt)
	w.checkBuckets(rt)
	w.checkSessions(rt)
	w.checkCounts(rt)
}

func diffTask(want, got statemachine.Task) string { return diffAny(want, got) }

func diffAny[T any](want, got T) string { return gocmp.Diff(want, got) }

// checkStamps compares the moments of all rounds.
func (w *twins) checkStamps(rt *rapid.T, want *twin, fields map[string]string) {
	got := map[string]statemachine.Time{}
	for round := range want.Round + 2 {
		names := []string{statemachine.StampTimeout, statemachine.StampFailure}
		for _, st := range statemachine.States() {
			names = append(names, string(st))
		}
		for _, name := range names {
			field := statemachine.RoundField(round, name)
			if text, ok := fields[field]; ok {
				at, err := statemachine.ParseTime(text)
				if err != nil {
					rt.Fatal(err)
				}
				got[field] = at
			}
		}
	}
	if !maps.Equal(want.stamps, got) {
		rt.Fatalf("stamps of task %d (- model, + redis):\n%s", want.ID, gocmp.Diff(want.stamps, got))
	}
}

func (w *twins) members(rt *rapid.T, key string) []redis.Z {
	all, err := w.sp.Raw.ZRangeWithScores(w.t.Context(), w.sp.Key(key), 0, -1).Result()
	if err != nil {
		rt.Fatal(err)
	}
	return all
}

// checkSets: exactly one set lists each id, the one of its state.
func (w *twins) checkSets(rt *rapid.T) {
	lists := map[int64][]statemachine.State{}
	for _, st := range statemachine.States() {
		for _, z := range w.members(rt, string(st)) {
			id, _ := strconv.ParseInt(fmt.Sprint(z.Member), 10, 64)
			lists[id] = append(lists[id], st)
		}
	}
	for _, id := range w.ids() {
		if !slices.Equal(lists[id], []statemachine.State{w.tasks[id].State}) {
			rt.Fatalf("task %d is %s and listed in %v", id, w.tasks[id].State, lists[id])
		}
	}
	if len(lists) != len(w.tasks) {
		rt.Fatalf("%d ids are listed, there are %d tasks", len(lists), len(w.tasks))
	}
}

// checkDue: the deadline index lists exactly the finite deadlines.
func (w *twins) checkDue(rt *rapid.T) {
	due := map[int64]float64{}
	for _, z := range w.members(rt, "due") {
		id, _ := strconv.ParseInt(fmt.Sprint(z.Member), 10, 64)
		due[id] = z.Score
	}
	for _, id := range w.ids() {
		want := w.tasks[id].Deadline(grace)
		score, listed := due[id]
		if listed != (want != statemachine.Never) || listed && math.Abs(score-float64(want)/1e6) > 1e-6 {
			rt.Fatalf("task %d, %s: deadline %s, the index has %f (%v)", id, w.tasks[id].State, want.Text(), score, listed)
		}
		delete(due, id)
	}
	if len(due) > 0 {
		rt.Fatalf("the deadline index lists strangers: %v", due)
	}
}

// checkBuckets: a bucket lists exactly its open tasks, but for overdue ones
// that a claim has met, in the order of claims.
func (w *twins) checkBuckets(rt *rapid.T) {
	got := map[int64]float64{}
	for _, b := range someBuckets {
		for _, z := range w.members(rt, "ready:"+b.Name()) {
			id, _ := strconv.ParseInt(fmt.Sprint(z.Member)[1:], 10, 64)
			if t := w.tasks[id]; t == nil || t.bucket != b {
				rt.Fatalf("bucket %q lists task %d", b.Name(), id)
			}
			got[id] = z.Score
		}
		if n := w.sp.Raw.LLen(w.t.Context(), w.sp.Key("wake:"+b.Name())).Val(); n > 1 {
			rt.Fatalf("%d wake-ups wait for bucket %q", n, b.Name())
		}
	}
	for _, id := range w.ids() {
		t := w.tasks[id]
		score, listed := got[id]
		if listed != t.listed || listed && math.Abs(score-float64(t.score)/1e6) > 1e-6 {
			rt.Fatalf("task %d, %s: in its bucket %v at %f, the model %v at %s", id, t.State, listed, score, t.listed, t.score.Text())
		}
		dropped := !listed && w.now > t.EndBefore
		if listed != (t.State == statemachine.Open) && !dropped {
			rt.Fatalf("task %d is %s; in its bucket: %v", id, t.State, listed)
		}
	}
}
