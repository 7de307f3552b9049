package store_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// grace is what the server of these tests has published.
const grace = 2 * second

// twins are a namespace on a real Redis and the pure model, which must agree
// after every step.
type twins struct {
	t  *testing.T
	sp *storetest.Space

	now   statemachine.Time
	tasks map[int64]*twin
	// held are the tasks as their workers were told, also of rounds long over.
	held []tasks.Claimed
	// commits are decisions made, carried out or not.
	commits []tasks.Commit
	// last is each worker's last claim.
	last     map[string]tasks.ClaimRequest
	sessions map[string]*sessionTwin
	// queues are those of the model, version that of their rules.
	queues  map[string]task.QueueSpec
	version int64
	count   int
}

// twin is a task of the model.
type twin struct {
	statemachine.Task
	bucket task.Bucket
	// score and listed are what the model expects of the bucket.
	score  statemachine.Time
	listed bool
	stamps map[string]statemachine.Time
	// worker and incarnation are whose session claimed the current round, node where
	// it runs, allotted which gpus it has there.
	worker      string
	incarnation int64
	node        string
	allotted    []int
}

// TestLongModel: whatever happens in whatever order, Redis and the model agree. A
// failure prints the steps and the seed that repeats them.
func TestLongModel(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := newTwins(t, rt, sp)
		rt.Repeat(map[string]func(*rapid.T){
			"":            w.check,
			"open":        w.open,
			"claim":       w.claim,
			"claim again": w.claimAgain,
			"set queue":   w.setQueue,
			"worker":      w.worker,
			"clerk":       w.clerk,
			"clerk twice": w.clerk,
			"decide":      w.decideOnly,
			"late":        w.late,
			"repeat":      w.repeat,
			"clock":       w.tick,
			"register":    w.register,
			"renew":       w.renew,
			"leave":       w.leave,
			"lost":        w.lost,
			"lease":       w.leasePasses,
		})
	})
}

func newTwins(t *testing.T, rt *rapid.T, sp *storetest.Space) *twins {
	t.Helper()
	sp.Anew(t)
	w := &twins{
		t: t, sp: sp, now: noon, tasks: map[int64]*twin{}, last: map[string]tasks.ClaimRequest{},
		sessions: map[string]*sessionTwin{}, version: 2,
		queues: map[string]task.QueueSpec{"q": task.ParseQueue("q", nil), task.DefaultQueue: task.ParseQueue(task.DefaultQueue, nil)},
	}
	sp.SetClock(t, w.now)
	if err := sp.Store.AddQueue(t.Context(), w.queues["q"]); err != nil {
		rt.Fatal(err)
	}
	if err := sp.Store.PublishGrace(t.Context(), grace); err != nil {
		rt.Fatal(err)
	}
	return w
}

func (w *twins) ids() []int64 {
	ids := make([]int64, 0, len(w.tasks))
	for id := range w.tasks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// apply carries commits out on both sides and compares what became of them.
func (w *twins) apply(rt *rapid.T, commits ...tasks.Commit) {
	out, err := storetest.Apply(w.t.Context(), w.sp.Store, commits...)
	if err != nil {
		rt.Fatal(err)
	}
	for i, o := range commits {
		want, wantErr := w.model(o.Move)
		if out[i].Result != want || !sameRefusal(out[i].Err, wantErr) {
			rt.Fatalf("%s of task %d from %s: redis says %v, %v, the model %v, %v",
				o.Event, o.ID, o.From, out[i].Result, out[i].Err, want, wantErr)
		}
		if short := want == statemachine.Moved && o.Settles() && w.tasks[o.ID].State == statemachine.Executed; out[i].Unsettled != short {
			rt.Fatalf("%s of task %d: redis says unsettled %v, the model %v", o.Event, o.ID, out[i].Unsettled, short)
		}
	}
	w.commits = append(w.commits, commits...)
}

// model makes the move on the model alone.
func (w *twins) model(m statemachine.Move) (statemachine.Result, error) {
	task := w.tasks[m.ID]
	plain := m.Unsettled()
	if s := w.sessions[task.worker]; task.incarnation > 0 && !s.holds(task.incarnation) {
		m = plain
	}
	after, result, err := statemachine.Apply(task.Task, m, w.now)
	if result != statemachine.Moved {
		return result, err
	}
	task.Task = after
	if after.State == plain.To {
		m = plain
	}
	for _, field := range m.Stamps() {
		task.stamps[field] = w.now
	}
	if m.AskStop {
		return result, nil
	}
	task.listed = m.To == statemachine.Open
	if task.listed {
		task.score = max(w.now, task.StartAfter, task.NotBefore)
		if m.Event == statemachine.Create && task.StartAfter > 0 {
			task.score = task.StartAfter
		}
	}
	return result, nil
}

func sameRefusal(a, b error) bool {
	for _, target := range []error{statemachine.ErrStale, statemachine.ErrConflict, statemachine.ErrStopAsked} {
		if errors.Is(a, target) != errors.Is(b, target) {
			return false
		}
	}
	return (a == nil) == (b == nil)
}
