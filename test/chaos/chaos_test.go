package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

func TestMain(m *testing.M) {
	conn.Silence() // that Redis is away is nothing to tell
	redistest.Main(m)
}

// drain is how long all that is open may take once no more harm is done. A task
// without a timeout waits for its program, one that failed now and then may need
// some rounds, and the machine may be busy with other tests.
const drain = 3 * time.Minute

// A21, A27, I-NOPROC, and the acceptance test of the core: nothing lost, nothing
// twice, nothing left.
func TestLongKilledAtRandom(t *testing.T) {
	s := readSettings(t)
	r := newReport(s)
	// Members are started by this thread: they die with it, and see what it mounts.
	runtime.LockOSThread()
	tr := newTrial(t, s, r)
	o := tr.startOpening(t)
	tr.torment(t)
	tr.calm(t)
	o.stop(t, r)
	finished := cameTrue(drain, func() bool { return tr.pending(t) == 0 })
	if !finished {
		r.violate(unfinished, "not everything is archived after %v: %s", drain, tr.counted(t))
	}
	tr.watch.close(r)
	r.Seconds.Drain = time.Since(tr.calmed).Seconds()
	tr.examine(t, o.tasks)
	r.print(t)
}

// trial is one run.
type trial struct {
	*storetest.Space
	settings
	report  *report
	dir     string
	rnd     *rand.Rand
	fleet   *crew
	places  places
	proxy   *proxy
	watch   *watcher
	endings []ending
	// trouble is until when members may end by themselves: Redis is away, or was.
	trouble time.Time
	// redisAway says that Redis is killed or frozen, until that is undone.
	redisAway bool
	redisDied time.Time
	// forgot is when Redis died that came back without what it had acknowledged.
	forgot   losses
	clock    *redistest.Clock // of Redis
	clockOff bool
	calmed   time.Time
	// forgotten are the ids that servers say may be lost with the history of Redis.
	forgotten []idRange
	// noticed is when they found that.
	noticed losses
}

func newTrial(t *testing.T, s settings, r *report) *trial {
	t.Helper()
	clock := redistest.NewClock(t)
	sp := storetest.On(t, redistest.Start(t, redistest.WithClock(clock),
		redistest.WithConfig("appendonly", "yes"), redistest.WithConfig("appendfsync", "everysec")))
	sp.Where = storetest.Where(sp.Server) // users do not survive a restart
	sp.Store = sp.Dial(t)
	tr := &trial{
		Space: sp, settings: s, report: r, dir: s.directory(t),
		rnd: rand.New(rand.NewPCG(s.seed, 0)), places: findPlaces(t, sp, r), clock: clock,
	}
	tr.write(t)
	tr.proxy = newProxy(t, s.seed, 3)
	tr.fleet = tr.newFleet(t, build(t, tr.dir))
	tr.watch = newWatcher(t, sp)
	return tr
}

// build makes the programs as they are shipped.
func build(t *testing.T, dir string) string {
	t.Helper()
	bin := filepath.Join(dir, "bin") + string(filepath.Separator)
	cmd := exec.Command("go", "build", "-o", bin,
		"github.com/tdf-go/tdf/cmd/tdf-server", "github.com/tdf-go/tdf/cmd/tdf-worker", "github.com/tdf-go/tdf/test/chaos/handler")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// write writes the files that all members use.
func (tr *trial) write(t *testing.T) {
	t.Helper()
	t.Setenv("CHAOS_LEDGER", filepath.Join(tr.dir, "ledger"))
	t.Setenv("CHAOS_CANARY", filepath.Join(tr.dir, "canary"))
	t.Setenv("PATH", filepath.Join(tr.dir, "bin")+":"+os.Getenv("PATH"))
	programs := filepath.Join(tr.dir, "programs")
	for name, text := range map[string]string{
		"chaos.cfg":           fmt.Sprintf(config, tr.Where.Host, tr.Namespace, programs),
		"source/run.sh":       program,
		"ledger":              "",
		"bin/chaos":           fmt.Sprintf(commandFile, os.Getenv("CHAOS_LEDGER"), tr.Namespace, filepath.Join(tr.dir, "source", "run.sh")),
		"handled":             "",
		"programs/.directory": "",
		"canary/sub/bird":     canary,
	} {
		file := filepath.Join(tr.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// pending counts the tasks that are not archived; -1 while Redis does not say.
func (tr *trial) pending(t *testing.T) int64 {
	t.Helper()
	counts, err := tr.Store.Count(t.Context())
	if err != nil {
		return -1
	}
	pending := int64(0)
	for state, n := range counts {
		if state != statemachine.Archived {
			pending += n
		}
	}
	return pending
}

func (tr *trial) counted(t *testing.T) string {
	t.Helper()
	counts, err := tr.Store.Count(t.Context())
	return fmt.Sprint(counts, err)
}

// cameTrue is wait.Eventually for what is reported with the rest: it reports whether
// the condition came true in time.
func cameTrue(limit time.Duration, condition func() bool) bool {
	end := time.Now().Add(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if now := <-tick.C; now.After(end) {
			return false
		}
	}
	return true
}
