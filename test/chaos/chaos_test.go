package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/proctest"
	"github.com/tdf-go/tdf/internal/redistest"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/storetest"
	"github.com/tdf-go/tdf/internal/wait"
	"github.com/tdf-go/tdf/statemachine"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const tasks = 200

// program is run.sh: it writes what really happened into a ledger outside TDF.
// The first word says how it behaves.
const program = `#!/bin/sh
echo "$TDF_TASK_ID $TDF_ROUND start" >> "$CHAOS_LEDGER"
case "$1" in
quick) ;;
nap) sleep 0.3 ;;
moody) [ $(( ($(date +%N | sed 's/^0*//') / 1000) % 2 )) = 0 ] || { echo "in a bad mood" >&2; exit 1; } ;;
slow) [ "$TDF_ROUND" -ge 1 ] || sleep 30 ;;
long) [ "$TDF_ROUND" -ge 1 ] || for i in $(seq 80); do
	sleep 0.1; echo "$TDF_TASK_ID $TDF_ROUND beat" >> "$CHAOS_LEDGER"
done ;;
loud) head -c 300000 /dev/zero | tr '\0' x ;;
esac
echo "$TDF_TASK_ID $TDF_ROUND end" >> "$CHAOS_LEDGER"
echo "done $TDF_TASK_ID"
`

const config = `[redis]
host=%s
[tdf]
namespace=%s
[server]
timeout_grace=1.5
worker_timeout=2
[worker]
slots=2
kill_grace=0.5
environment=CHAOS_LEDGER
program_dir=%s
output_limit=64KiB
[manager]
[task_defaults]
`

// A21, A27, I-NOPROC, and the acceptance test of the core: nothing lost, nothing
// twice, nothing left.
func TestKilledAtRandom(t *testing.T) {
	seed, duration := settings(t)
	t.Logf("TDF_CHAOS_SEED=%d TDF_CHAOS_DURATION=%s", seed, duration)
	dir := t.TempDir()
	sp := storetest.On(t, redistest.Start(t))
	sp.Where = storetest.Where(sp.Server)
	prepare(t, dir, sp)
	open(t, sp, duration)
	f := newFleet(t, dir, build(t, dir))
	kills := f.torment(t, rand.New(rand.NewPCG(seed, 0)), duration)
	f.checkFaults(t, duration)
	wait.Eventually(t, 2*time.Minute, func() bool {
		counts, err := sp.Store.Count(t.Context())
		return err == nil && counts[statemachine.Archived] == tasks
	}, "not everything is archived: %s", counted(t, sp))
	t.Logf("%d kills, %d lines in the ledger", kills, len(lines(t, dir, "ledger")))
	proctest.AwaitNone(t, 10*time.Second, "TDF_NAMESPACE="+sp.Namespace)
	checkTasks(t, sp)
	checkLedgers(t, sp, dir)
	checkAudit(t, sp)
}

func settings(t *testing.T) (uint64, time.Duration) {
	t.Helper()
	seed, duration := uint64(time.Now().UnixNano()), 60*time.Second
	if text := os.Getenv("TDF_CHAOS_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("TDF_CHAOS_SEED=%s: want a whole number", text)
		}
		seed = n
	}
	if text := os.Getenv("TDF_CHAOS_DURATION"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("TDF_CHAOS_DURATION=%s: want a duration such as 45s", text)
		}
		duration = d
	}
	return seed, duration
}

func prepare(t *testing.T, dir string, sp *storetest.Space) {
	t.Helper()
	t.Setenv("CHAOS_LEDGER", filepath.Join(dir, "ledger"))
	programs := filepath.Join(dir, "programs")
	for name, text := range map[string]string{
		"chaos.cfg":           fmt.Sprintf(config, sp.Where.Host, sp.Namespace, programs),
		"source/run.sh":       program,
		"ledger":              "",
		"handled":             "",
		"programs/.directory": "",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// open opens the tasks so that there is work through most of the torment. Those
// that are endless have no timeout: only the loss of their worker ends a round.
func open(t *testing.T, sp *storetest.Space, duration time.Duration) {
	t.Helper()
	now, err := sp.Store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	step := statemachine.Duration(duration.Microseconds()) * 8 / 10 / tasks
	kinds := []string{"quick", "nap", "moody", "slow", "long", "loud", "long"}
	specs := make([]store.Spec, tasks)
	for i := range specs {
		specs[i] = storetest.Spec(func(s *store.Spec) {
			s.Program, s.Source = "chaos", "rsync:../source/run.sh"
			s.Input = kinds[i%len(kinds)]
			s.StartAfter = now.Add(step * statemachine.Duration(i)).Text()
			s.Timeout, s.MaxTimeouts, s.MaxFails, s.MaxLosses = "3", "inf", "50", "inf"
			if s.Input == "long" {
				s.Timeout = "inf"
			}
		})
	}
	sp.Open(t, specs...)
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

func counted(t *testing.T, sp *storetest.Space) fmt.Stringer {
	t.Helper()
	return late(func() string {
		counts, err := sp.Store.Count(t.Context())
		return fmt.Sprint(counts, err)
	})
}

// late is a text made when it is printed.
type late func() string

func (l late) String() string { return l() }

func lines(t *testing.T, dir, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(strings.ReplaceAll(string(text), " ", "/"), "\n", " "))
}
