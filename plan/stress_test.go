package plan_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// P15 of zk-plan: ten workers, a hundred tasks of which all but the first ten need ten
// others each. Every task looks whether it is alone and has exactly the arguments it
// should, takes 100 ms, and brings its number.
func TestStress(t *testing.T) {
	t.Parallel()
	const workers, tasks, needs = 10, 100, 10
	want := make([][]string, tasks)
	var alone [tasks]atomic.Int32
	var mu sync.Mutex
	reported := map[int]int{}
	s := newSite(t, workers, handlers{"number": func(_ context.Context, j *worker.Job) error {
		n, err := strconv.Atoi(j.Task.Input)
		if err != nil {
			return err
		}
		if now := alone[n].Add(1); now != 1 {
			t.Errorf("task %d runs %d times", n, now)
		}
		defer alone[n].Add(-1)
		if got := j.Args[1:]; !slices.Equal(got, want[n]) {
			t.Errorf("task %d got %v, want %v", n, got, want[n])
		}
		<-time.After(100 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		reported[n]++
		fmt.Fprintln(j.Stdout(), n)
		return nil
	}})
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	p := newPlan(t, s)
	all := make([]*plan.Task, tasks)
	for n := range all {
		var deps []plan.Dep
		if n >= needs {
			for _, k := range random.Perm(n)[:needs] {
				deps, want[n] = append(deps, all[k]), append(want[n], strconv.Itoa(k))
			}
		}
		all[n] = p.Add(spec("number", strconv.Itoa(n)), deps...)
	}
	must(t, p.Send(t.Context()))
	began := time.Now()
	checkEnd(t, run(t, p), task.PlanCompleted, tasks, 0, 0, 0)
	wait.Within(t, "the plan, unless the workers wait for one another,", began, time.Now(), tasks*100*time.Millisecond*3/4)
	if len(reported) != tasks {
		t.Errorf("%d numbers of %d", len(reported), tasks)
	}
	for n, times := range reported {
		if times != 1 {
			t.Errorf("%d was reported %d times", n, times)
		}
	}
	task, err := s.Task(t.Context(), all[tasks-1].ID())
	if err != nil || len(task.Needs) != needs || task.Plan != p.ID() || strings.TrimSpace(task.Output()) != "99" {
		t.Errorf("%+v, %v", task, err)
	}
}
