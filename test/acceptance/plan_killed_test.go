package acceptance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
)

// numbered prints its number. It is called with the number, with those that it needs in
// one word such as 3,1,4, and then with their results; it fails if these are others, or
// if it is not alone.
const numbered = `number=$1 wanted=$2 lock=$3/$1
shift 3
IFS=,
[ "$*" = "${wanted#-}" ] || { echo "task $number got '$*' and wants '${wanted#-}'" >&2; exit 1; }
mkdir "$lock" 2>/dev/null || { read round <"$lock/round"; [ "$round" != "$TDF_ROUND" ]; } || { echo "$number is not alone" >&2; exit 1; }
echo "$TDF_ROUND" >"$lock/round"
sleep 0.5
read round <"$lock/round"
[ "$round" = "$TDF_ROUND" ] || { echo "$number was begun again beside itself" >&2; exit 1; }
echo "$number"`

// P07, P09 and P16: a plan in which most tasks need five others, while a worker is
// killed every second, and a server every two: it is completed, every argument exact,
// every task alone.
func TestPlanWhileAllIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.leasing(t)
	members := []*daemon{w.serverWith(t, "server-2", shortLeaseSet)}
	for i := range 3 {
		members = append(members, w.worker(t, fmt.Sprint("w", i), "slots=1"))
	}
	p, tasks := w.numbers(t, 60, 5)
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	over := make(chan plan.Status, 1)
	go func() {
		status, err := p.Wait(t.Context())
		if err != nil {
			t.Error(err)
		}
		over <- status
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var status plan.Status
	kills := 0
	for done := false; !done; {
		select {
		case status = <-over:
			done = true
		case <-tick.C:
			if kills == 12 {
				continue // let it come to its end
			}
			i := 1 + rnd.IntN(len(members)-1)
			w.kill(t, members[i])
			members[i] = w.worker(t, fmt.Sprintf("w%d-%d", i, kills), "slots=1")
			if kills++; kills%2 == 0 {
				w.kill(t, members[0])
				members[0] = w.serverWith(t, fmt.Sprint("server-", 2+kills), shortLeaseSet)
			}
		}
	}
	if status.State != manager.PlanCompleted || kills == 0 {
		t.Errorf("after %d kills: %+v", kills, status)
	}
	losses := 0
	for i, task := range tasks {
		if result, err := p.Result(t.Context(), task); err != nil || result != fmt.Sprint(i) {
			t.Errorf("task %d: result %q, error %v", i, result, err)
		}
		stored := w.Task(t, task.ID())
		losses += stored.Losses
		if stored.Fails > 0 {
			t.Errorf("task %d has failed: %s", i, stored.Fields["0:error"])
		}
	}
	t.Logf("%d kills, %d losses", kills, losses)
	if losses == 0 {
		t.Error("no worker was killed in the middle of a task: the run has shown too little")
	}
	w.sound(t)
}

// numbers is a plan of n tasks, of which each but the first few needs so many of those before it.
func (w *world) numbers(t *testing.T, n, needs int) (*plan.Plan, []*plan.Task) {
	t.Helper()
	m := w.project(t)
	p, err := plan.New(t.Context(), m, "numbers")
	if err != nil {
		t.Fatal(err)
	}
	spec, locks := w.script(t, "numbered", numbered), t.TempDir()
	unlimited := manager.Unlimited
	spec.MaxLosses = &unlimited
	tasks := make([]*plan.Task, n)
	for i := range tasks {
		var words []string
		var deps []plan.Dep
		for j := range needs {
			if i < needs {
				break
			}
			k := (i*7 + j*3) % i
			words, deps = append(words, fmt.Sprint(k)), append(deps, tasks[k])
		}
		spec.Argv = []string{fmt.Sprint(i), "-" + strings.Join(words, ","), locks}
		tasks[i] = p.Add(spec, deps...)
	}
	return p, tasks
}
