package acceptance

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
)

// storm kills what works on a plan. Its choices are drawn from the seed: a run with the
// same one is much like it, but not the same.
type storm struct {
	*world
	weather

	seed    uint64
	rnd     *rand.Rand
	recipe  *recipe
	dir     string // of the ledger
	manager *manager.Manager

	servers, workers []*daemon
	names            []string // of the workers
	since            []int    // lines of the ledger that are older than the worker
	archives, builds *daemon
	killed           map[string]int // by kind
}

// weather is how hard it blows.
type weather struct {
	nap string // how long each task takes, in seconds
	// kills of workers are the end of it, so that a machine on which they start slowly
	// comes to an end, too.
	kills int
}

func newStorm(t *testing.T, seed uint64, of weather) *storm {
	t.Helper()
	t.Logf("TDF_STRESS_SEED=%d", seed)
	s := &storm{world: newWorld(t), weather: of, seed: seed, rnd: rand.New(rand.NewPCG(seed, 0)), killed: map[string]int{}}
	s.environ = patientRedis
	s.recipe, s.dir = s.stressRecipe(t, rand.New(rand.NewPCG(seed, 1)), s.nap)
	s.manager = s.project(t)
	s.archives = s.archiver(t)
	for i := range 2 {
		s.servers = append(s.servers, s.serverWith(t, fmt.Sprint("server", i), "server.worker_timeout=2"))
	}
	wait.Eventually(t, planPatience, func() bool { // who registers before that has the lease of the defaults
		return s.Raw.HExists(t.Context(), s.Key("meta"), "worker_timeout").Val()
	}, "the servers do not say how long a lease is")
	for i := range stressWorkers {
		s.names = append(s.names, fmt.Sprint("w", i))
		s.workers, s.since = append(s.workers, s.worker(t, s.names[i], "slots=1")), append(s.since, 0)
	}
	return s
}

// blow builds the plan, kills until it is over, and looks at what is left.
func (s *storm) blow(t *testing.T, table io.Writer) {
	t.Helper()
	began := time.Now()
	s.build(t)
	due := map[string]time.Time{"builder": time.Now().Add(s.between(0, time.Second))}
	wait.Eventually(t, 2*planPatience, func() bool {
		s.strike(t, due)
		return s.builds.Ended()
	}, "the plan does not come to its end: %s", late(func() string { return fmt.Sprint(s.manager.Count(t.Context())) }))
	s.builds.Finish(t)
	s.check(t, time.Since(began), table)
}

// build makes the plan; who builds it is killed twice in the middle.
func (s *storm) build(t *testing.T) {
	t.Helper()
	most := stressTasks/stressPortion - 1
	for range 2 {
		s.builds = s.start(t, s.builder(t, s.recipe))
		s.builds.Says(t, fmt.Sprintf("sent %d .", (1+s.rnd.IntN(most))*stressPortion))
		<-time.After(s.between(0, 2*s.recipe.Pace))
		s.strikeDown(t, "builder", s.builds)
		s.halfBuilt(t)
	}
	s.builds = s.start(t, s.builder(t, s.recipe))
	s.builds.Says(t, "ready")
}

// halfBuilt checks what a manager has left that was killed while it added.
func (s *storm) halfBuilt(t *testing.T) {
	t.Helper()
	plans := storetest.All(t, s.manager.Plans(t.Context()))
	if len(plans) != 1 || plans[0].Total%stressPortion != 0 {
		t.Errorf("plans %+v: want one of whole portions", plans)
	}
	s.sound(t)
}

// strike kills whose time has come, and starts another one.
func (s *storm) strike(t *testing.T, due map[string]time.Time) {
	t.Helper()
	for _, kind := range []string{"worker", "server", "manager", "builder"} {
		if time.Now().Before(due[kind]) || s.killed["worker"] >= s.kills {
			continue
		}
		switch kind {
		case "worker":
			due[kind] = time.Now().Add(50 * time.Millisecond)
			if s.strikeWorker(t) {
				due[kind] = time.Now().Add(time.Second)
			}
		case "server":
			i := s.rnd.IntN(len(s.servers))
			s.strikeDown(t, kind, s.servers[i])
			s.servers[i] = s.serverWith(t, fmt.Sprint("server", i), "server.worker_timeout=2")
			due[kind] = time.Now().Add(s.between(500*time.Millisecond, 3*time.Second))
		case "manager":
			s.strikeDown(t, kind, s.archives)
			s.archives = s.archiver(t)
			due[kind] = time.Now().Add(s.between(time.Second, 4*time.Second))
		case "builder": // while it waits
			if s.builds.Ended() {
				return
			}
			s.strikeDown(t, kind, s.builds)
			s.builds = s.start(t, s.builder(t, s.recipe))
			due[kind] = time.Now().Add(s.between(3*time.Second, 6*time.Second))
		}
	}
}

// strikeWorker kills a worker in the middle of a task, if there is one.
func (s *storm) strikeWorker(t *testing.T) bool {
	t.Helper()
	for _, i := range s.rnd.Perm(len(s.workers)) {
		if !s.busy(t, i) {
			continue
		}
		s.workers[i].Signal(t, syscall.SIGSTOP)
		if !s.busy(t, i) {
			s.workers[i].Signal(t, syscall.SIGCONT)
			continue
		}
		s.strikeDown(t, "worker", s.workers[i])
		if s.rnd.IntN(2) == 0 { // else its successor takes its task back, and no server has to
			s.names[i] = fmt.Sprintf("w%d-%d", i, s.killed["worker"])
		}
		s.since[i] = len(stressLedger(t, s.dir))
		s.workers[i] = s.worker(t, s.names[i], "slots=1")
		return true
	}
	return false
}

// busy reports whether a program of the worker is at work, as it says itself.
func (s *storm) busy(t *testing.T, worker int) bool {
	t.Helper()
	at := false
	for _, e := range stressLedger(t, s.dir)[s.since[worker]:] {
		if e.worker == s.names[worker] {
			at = e.what == "start"
		}
	}
	return at
}

// strikeDown kills a program; that of the builder may end by itself at the same moment.
func (s *storm) strikeDown(t *testing.T, kind string, d *daemon) {
	t.Helper()
	d.Killed = true
	if err := d.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-d.Done
	s.killed[kind]++
}

func (s *storm) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.rnd.Int64N(int64(most-least)))
}
