package acceptance

import (
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// The steps of the plan: a diamond with B twice, and one more layer. One side of it needs the
// other, so that who is told of B twice runs too early. The padding needs the failure of A, and
// so never runs: it fills the first page of A's release, and the first portion that is sent.
const (
	stepA   = 0
	stepB   = 1
	padding = 99 // the steps from 2 on
	stepC   = stepB + padding + 1
	stepD   = stepC + 1
	stepE   = stepD + 1
	steps   = stepE + 1
)

var stepNames = map[int]string{stepA: "A", stepB: "B", stepC: "C", stepD: "D", stepE: "E"}

// planPatience is how long a plan may take.
const planPatience = 2 * time.Minute

// patientRedis is for programs that are started all the time on a machine that is busy: who does
// not reach Redis at its start gives up.
var patientRedis = []string{"TDF_REDIS_DIAL_TIMEOUT=60", "TDF_REDIS_READ_TIMEOUT=60", "TDF_REDIS_WRITE_TIMEOUT=60"}

// diamond is what run.sh notes of the plan, sorted: each task once, with its arguments in order.
var diamond = []string{"A:", "B:A", "C:A B", "D:B C B", "E:D A"}

// noting notes its name and arguments in a ledger outside TDF, and brings its name.
const noting = `name=$1 ledger=$2; shift 2; echo "$name:$*" >>"$ledger"; echo "$name"`

// role is a kind of program that is killed.
type role struct {
	points []point
	// beside are the programs beside it, which live.
	beside func(t *testing.T, w *world)
	// command starts it; builds says that it is given a plan to make.
	command func(t *testing.T, r *rig, plan *recipe) *exec.Cmd
	builds  bool
}

// rig is a namespace in which programs of one role are killed.
type rig struct {
	*world
	role
	scripts map[string]string // the names of those that know plans, by their hashes
	manager *manager.Manager
	program task.Spec
}

// P09: a manager that builds a plan, the server that settles its tasks and tells those
// that need them, and the worker that runs them, are each killed before and after every
// kind of call that the plan makes them send. Started again, they complete it; every
// task has run once, with every argument once.
func TestLongPlanKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	scripts := planScripts(t, srv)
	for name, role := range roles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &rig{world: worldOn(t, storetest.On(t, srv)), role: role, scripts: scripts}
			r.environ = patientRedis
			r.manager, r.program = r.project(t), r.script(t, "noting", noting)
			role.beside(t, r.world)
			t.Run("nowhere", r.undisturbed)
			for _, p := range role.points {
				if t.Failed() {
					return // what is left of a plan stands in the way of the next
				}
				t.Run("before "+p.name, func(t *testing.T) { r.kill(t, p, true) })
				t.Run("after "+p.name, func(t *testing.T) { r.kill(t, p, false) })
			}
		})
	}
}

// kill lets the program come to the point, kills it there, and starts it again.
func (r *rig) kill(t *testing.T, p point, before bool) {
	t.Helper()
	plan, want := r.plan(t), outcome{after: r.lastTask(t), ran: diamond}
	proxy := r.Server.Proxy(t)
	halt := proxy.HaltAfter
	if before {
		halt = proxy.HaltBefore
	}
	if before && p.again != "" {
		want.ran = slices.Sorted(slices.Values(append([]string{p.again}, diamond...)))
	}
	there := halt(r.match(p, want.after))
	r.make(t, plan)
	victim := r.begin(t, plan, proxy)
	wait.Closed(t, planPatience, there.Done(), "it does not come to this point")
	r.world.kill(t, victim)
	proxy.Bury()
	r.complete(t, plan, r.begin(t, plan, nil), want)
}

// undisturbed runs a plan without a kill, and finds out whether there are points that
// no kill is tried at.
func (r *rig) undisturbed(t *testing.T) {
	plan, last := r.plan(t), r.lastTask(t)
	proxy := r.Server.Proxy(t)
	missed := make(chan string, 1)
	proxy.HaltBefore(func(args []string) bool {
		script := r.called(args)
		if script != "" && !slices.ContainsFunc(r.points, func(p point) bool { return p.at(script) }) {
			select {
			case missed <- script:
			default:
			}
		}
		return false
	})
	r.make(t, plan)
	r.complete(t, plan, r.begin(t, plan, proxy), outcome{after: last, ran: diamond})
	select {
	case script := <-missed:
		t.Errorf("no kill is tried at the script %s", script)
	default:
	}
}

// make makes the plan, unless that is the role under test.
func (r *rig) make(t *testing.T, plan *recipe) {
	t.Helper()
	if r.builds {
		return
	}
	if _, _, err := plan.build(t.Context(), r.manager, io.Discard); err != nil {
		t.Fatal(err)
	}
}

// begin starts the program; without a proxy it reaches Redis directly.
func (r *rig) begin(t *testing.T, plan *recipe, proxy *redistest.Proxy) *daemon {
	t.Helper()
	cmd := r.command(t, r, plan)
	if proxy != nil {
		host, port := address(t, proxy)
		cmd.Env = []string{"TDF_REDIS_HOST=" + host, fmt.Sprint("TDF_REDIS_PORT=", port)}
	}
	cmd.Dir = r.own(t, "victim")
	return r.start(t, cmd)
}

// plan is the recipe of the next one.
func (r *rig) plan(t *testing.T) *recipe {
	t.Helper()
	name := strings.ReplaceAll(t.Name(), "/", "-")
	ledger := r.file(t, name+"/ledger", "", 0o666)
	p := &recipe{Name: name, Program: r.program, Portion: steps, Steps: make([]recipeStep, steps)}
	for i := range p.Steps {
		p.Steps[i] = recipeStep{Argv: []string{"padding", ledger}, Needs: []int{stepA}, Skipped: true}
	}
	for i, needs := range map[int][]int{
		stepA: {}, stepB: {stepA}, stepC: {stepA, stepB}, stepD: {stepB, stepC, stepB}, stepE: {stepD, stepA},
	} {
		p.Steps[i] = recipeStep{Argv: []string{stepNames[i], ledger}, Needs: needs}
	}
	return p
}

// outcome is what becomes of a plan: the tasks after that id, and what they have noted.
type outcome struct {
	after int64
	ran   []string
}

// complete waits until the plan is over, and checks all that became of it.
func (r *rig) complete(t *testing.T, plan *recipe, d *daemon, want outcome) {
	t.Helper()
	var found []task.Plan
	wait.Eventually(t, planPatience, func() bool {
		found = r.plans(t, plan.Name)
		return len(found) > 0 && !found[0].Over.IsZero()
	}, "the plan is not over")
	if !r.builds {
		d.Says(t, "initializing") // before that, a signal is its end
		r.leave(t, d)
	}
	d.Finish(t)
	if p := found[0]; p.State != task.PlanCompleted || p.Total != steps || p.Skipped != padding || len(found) != 1 {
		t.Errorf("%d plans, the last %+v", len(found), p)
	}
	if made := r.lastTask(t) - want.after; made != steps {
		t.Errorf("%d tasks were made, want %d", made, steps)
	}
	for step, name := range stepNames {
		task := r.Task(t, want.after+1+int64(step))
		if task.Fails > 0 { // one that begins too early finds that it has no arguments
			t.Errorf("%s has failed: %s", name, task.Fields["0:error"])
		}
	}
	ran := strings.Split(strings.TrimSpace(content(t, plan.Steps[stepA].Argv[1])), "\n")
	if slices.Sort(ran); !slices.Equal(ran, want.ran) {
		t.Errorf("these were run: %q, want %q", ran, want.ran)
	}
	r.sound(t)
}

// plans are those of that name.
func (r *rig) plans(t *testing.T, name string) []task.Plan {
	t.Helper()
	return slices.DeleteFunc(storetest.All(t, r.manager.Plans(t.Context())), func(p task.Plan) bool { return p.Name != name })
}
