package acceptance

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// numbered brings its number. It is called with the number, with those that it needs in
// one word such as -3,1,4, with a directory outside TDF, how long it naps, and then with
// their results; it says in a ledger if these are others, or if it is not alone: the
// kernel keeps its lock for as long as anything of it lives.
const numbered = `number=$1 wanted=$2 dir=$3 nap=$4
shift 4
say() { echo "$number $TDF_ROUND $TDF_WORKER $1" >>"$dir/ledger"; }
fail() { say wrong; echo "task $number $1" >&2; exit 1; }
exec 9>"$dir/$number.lock"
flock -n 9 || fail "is not alone"
say start
IFS=,
[ "-$*" = "$wanted" ] || fail "got '$*' and wants '$wanted'"
sleep "$nap"
say end
echo "$number"`

// The size of the plan, as zk-plan has it (P15).
const (
	stressWorkers = 10
	stressTasks   = 100
	stressNeeds   = 10
	stressPortion = 10
)

// P07, P15 and P16: a plan in which all but the first ten tasks need ten others, on ten
// workers. The manager that builds it is killed twice while it adds, and once more; a
// worker is killed every second, and two servers and the manager that archives at random
// moments. Every argument is exact, every task alone, and nothing is there twice.
//
// `make stress-plans` does this with many seeds.
func TestLongPlanWhileAllIsKilled(t *testing.T) {
	t.Parallel()
	seeds, weather := stressSeeds(t)
	var report strings.Builder
	table := tabwriter.NewWriter(&report, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(table, "seed\tseconds\tworkers killed\tservers killed\tmanagers killed\trounds begun\tlosses\tfindings")
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { newStorm(t, seed, weather).blow(t, table) })
	}
	_ = table.Flush() // to memory
	t.Logf("\n%s", report.String())
}

// stressSeeds are those of TDF_STRESS_SEEDS (1 to that number) or TDF_STRESS_SEED, or
// else one at random, for less long.
func stressSeeds(t *testing.T) ([]uint64, weather) {
	t.Helper()
	number := func(name string) uint64 {
		text := os.Getenv(name)
		n, err := strconv.ParseUint(text, 10, 64)
		if text != "" && err != nil {
			t.Fatalf("%s=%s: want a whole number", name, text)
		}
		return n
	}
	long := weather{nap: "0.5", kills: 60}
	if n := number("TDF_STRESS_SEED"); n > 0 {
		return []uint64{n}, long
	}
	var seeds []uint64
	for n := range number("TDF_STRESS_SEEDS") {
		seeds = append(seeds, n+1)
	}
	if len(seeds) == 0 {
		return []uint64{rand.Uint64()}, weather{nap: "0.2", kills: 12}
	}
	return seeds, long
}

// stressRecipe is the plan of a seed.
func (w *world) stressRecipe(t *testing.T, rnd *rand.Rand, nap string) (r *recipe, dir string) {
	t.Helper()
	dir = w.own(t, "numbers")
	allow(t, dir, 0o777)
	r = &recipe{Name: "numbers", Program: w.script(t, "numbered", numbered), Portion: stressPortion, Pace: 20 * time.Millisecond}
	r.Program.MaxLosses = task.Unlimited
	for i := range stressTasks {
		var words []string
		var needs []int
		if i >= stressNeeds {
			needs = rnd.Perm(i)[:stressNeeds]
		}
		for _, k := range needs {
			words = append(words, strconv.Itoa(k))
		}
		r.Steps = append(r.Steps, recipeStep{Argv: []string{strconv.Itoa(i), "-" + strings.Join(words, ","), dir, nap}, Needs: needs})
	}
	return r, dir
}

// entered is a line of the ledger.
type entered struct {
	number, round int
	worker, what  string
}

// stressLedger reads what the programs say themselves.
func stressLedger(t *testing.T, dir string) []entered {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "ledger"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var all []entered
	for line := range strings.Lines(string(text)) {
		var e entered
		if _, err := fmt.Sscan(line, &e.number, &e.round, &e.worker, &e.what); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// check looks at all that is left of the plan.
func (s *storm) check(t *testing.T, took time.Duration, table io.Writer) {
	t.Helper()
	plans := storetest.All(t, s.manager.Plans(t.Context()))
	if len(plans) != 1 || plans[0].State != task.PlanCompleted || plans[0].Total != stressTasks {
		t.Fatalf("plans %+v: want one of %d tasks that is completed", plans, stressTasks)
	}
	wait.Eventually(t, planPatience, func() bool {
		return s.Raw.ZCard(t.Context(), s.Key(string(sm.Archived))).Val() == stressTasks && len(s.running()) == 0
	}, "not all is archived and gone")
	begun, losses := s.checkRounds(t), s.checkTasks(t, plans[0].ID)
	if losses == 0 {
		t.Error("no worker was killed in the middle of a task: the run has shown too little")
	}
	findings := s.sound(t)
	fmt.Fprintf(table, "%d\t%.0f\t%d\t%d\t%d\t%d\t%d\t%d\n", s.seed, took.Seconds(),
		s.killed["worker"], s.killed["server"], s.killed["manager"]+s.killed["builder"], begun, losses, findings)
}

// checkRounds reads the ledger, and returns how many rounds have begun.
func (s *storm) checkRounds(t *testing.T) (begun int) {
	t.Helper()
	ended := map[int]bool{}
	rounds := map[entered]bool{}
	for _, e := range stressLedger(t, s.dir) {
		switch e.what {
		case "start":
			begun++
			if one := (entered{number: e.number, round: e.round}); rounds[one] {
				t.Errorf("round %d of %d was begun twice", e.round, e.number)
			} else {
				rounds[one] = true
			}
		case "end":
			ended[e.number] = true
		default:
			t.Errorf("%d, round %d, at %s: %s", e.number, e.round, e.worker, e.what)
		}
	}
	if len(ended) != stressTasks {
		t.Errorf("%d numbers have come to their end, want %d", len(ended), stressTasks)
	}
	return begun
}

// checkTasks reads the tasks of the plan, and returns how often they lost their worker.
func (s *storm) checkTasks(t *testing.T, plan task.PlanID) (losses int) {
	t.Helper()
	ids := storetest.All(t, s.manager.PlanTasks(t.Context(), plan))
	if len(ids) != stressTasks || s.lastTask(t) != stressTasks {
		t.Fatalf("the plan has %d tasks, of %d that were ever made", len(ids), s.lastTask(t))
	}
	results, err := s.manager.Results(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		task := s.Task(t, id)
		losses += task.Losses
		if results[i].Text != strconv.Itoa(i) || task.Fails > 0 {
			t.Errorf("task %d: result %q, %d fails: %s", i, results[i].Text, task.Fails, task.Fields["0:error"])
		}
	}
	return losses
}
