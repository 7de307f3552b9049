package upgrade

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

const tasks = 80

// program is run.sh: it writes what really happened into a ledger outside TDF.
const program = `#!/bin/sh
echo "$TDF_TASK_ID/$TDF_ROUND start" >> "$UPGRADE_LEDGER"
case "$1" in
nap) sleep 0.3 ;;
fail) [ "$TDF_ROUND" -ge 1 ] || { echo "not yet" >&2; exit 1; } ;;
slow) [ "$TDF_ROUND" -ge 1 ] || sleep 30 ;;
loud) head -c 200000 /dev/zero | tr '\0' x; echo ;;
esac
echo "$TDF_TASK_ID/$TDF_ROUND end" >> "$UPGRADE_LEDGER"
echo "done $TDF_TASK_ID"
`

const config = `[redis]
host=%s
[tdf]
namespace=%s
[server]
timeout_grace=1
worker_timeout=2
[worker]
slots=2
kill_grace=0.5
drain_timeout=1
environment=UPGRADE_LEDGER
spool_dir=../spool
output_limit=64KiB
[manager]
round_duration=0.2
[task_defaults]
max_fails=50
max_timeouts=inf
max_losses=inf
timeout=2
`

// members are all programs, in the order of a row's releases.
var members = []string{"server-1", "server-2", "worker-1", "worker-2", "manager-1", "manager-2"}

// rows are the ways in which two releases meet. What is replaced is replaced while
// tasks are in flight, each by the other release.
var rows = []struct {
	name    string
	begin   [6]release
	replace []string
	by      syscall.Signal
	// epoch says that Redis has lost something before.
	epoch bool
	// miscounts says that a previous server settles tasks of a job, without counting them there. A lap of
	// a current one corrects that later (server.TestJobIsCountedAgain).
	miscounts bool
}{
	{
		name:  "current servers, previous workers",
		begin: [6]release{current, current, previous, previous, previous, current},
	},
	{
		name:      "previous servers, current workers",
		begin:     [6]release{previous, previous, current, current, previous, current},
		miscounts: true,
	},
	{
		name:      "both of each at once",
		begin:     [6]release{previous, current, previous, current, previous, current},
		miscounts: true,
	},
	{
		name:      "both of each in a later epoch",
		begin:     [6]release{previous, current, previous, current, previous, current},
		epoch:     true,
		miscounts: true,
	},
	{
		name:      "servers first",
		replace:   []string{"server-1", "server-2", "worker-1", "worker-2", "manager-1", "manager-2"},
		by:        syscall.SIGTERM,
		miscounts: true,
	},
	{
		name:      "workers first, none asked",
		replace:   []string{"worker-1", "worker-2", "manager-1", "manager-2", "server-1", "server-2"},
		by:        syscall.SIGKILL,
		miscounts: true,
	},
	{
		name:      "and back",
		begin:     [6]release{current, current, current, current, current, current},
		replace:   []string{"manager-1", "manager-2", "worker-1", "worker-2", "server-1", "server-2"},
		by:        syscall.SIGTERM,
		miscounts: true,
	},
}

// J1: an upgrade with tasks in flight.
func TestLongBesideThePreviousRelease(t *testing.T) {
	t.Parallel()
	b := build(t)
	t.Run("next major version", func(t *testing.T) {
		t.Parallel()
		checkRefusals(t, b)
	})
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.On(t, redistest.Shared(t))
			c := newCrew(t, b, prepare(t, sp))
			c.submit(t, previous, tasks/2)
			c.submit(t, current, tasks/2)
			if row.epoch {
				openEpoch(t, sp)
			}
			for i, name := range members {
				c.start(t, name, row.begin[i])
			}
			for i, name := range row.replace {
				awaitArchived(t, sp, tasks*(i+1)/(len(row.replace)+3))
				c.replace(t, name, row.by)
			}
			if len(row.replace) > 0 && archived(t, sp) == tasks {
				t.Error("all was done before the last program was replaced: the run has shown little")
			}
			awaitArchived(t, sp, tasks)
			c.checkAlive(t)
			checkTasks(t, sp)
			checkLedgers(t, sp, c.dir)
			checkAudit(t, sp, row.miscounts)
		})
	}
}

// prepare makes the directory of a crew.
func prepare(t *testing.T, sp *storetest.Space) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"source", "programs"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	hosttest.WriteProgram(t, filepath.Join(dir, "source", "run.sh"), program, 0o700)
	text := fmt.Sprintf(config, sp.Server.Socket(), sp.Namespace)
	for name, text := range map[string]string{"crew.cfg": text, "ledger": "", "handled": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// submit opens tasks with the tdf-manager of a release.
func (c *crew) submit(t *testing.T, r release, n int) {
	t.Helper()
	kinds := []string{"nap", "fail", "nap", "loud", "nap", "slow", "nap", "quick"}
	var lines strings.Builder
	for i := range n {
		lines.WriteString(kinds[i%len(kinds)] + "\n")
	}
	args := []string{"submit", "--program", "upgrade", "--source", "rsync:../source/run.sh", "--each-line", "-"}
	if r == current {
		args = append(args, "--archive", "manager") // as the previous release always means
	}
	c.manage(t, r, lines.String(), args...)
}

// openEpoch does what a server does when Redis has lost what it had acknowledged.
func openEpoch(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sp.Store.Remember(conn.History{Epoch: 1, Seq: 1_000_000})
	if e, err := sp.Store.OpenEpoch(t.Context(), false); err != nil || e.Epoch != 2 {
		t.Fatalf("epoch %+v, error %v", e, err)
	}
}

func archived(t *testing.T, sp *storetest.Space) int64 {
	t.Helper()
	n, err := sp.Raw.ZCard(t.Context(), sp.Key("archived")).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func awaitArchived(t *testing.T, sp *storetest.Space, n int) {
	t.Helper()
	wait.Eventually(t, time.Minute, func() bool { return archived(t, sp) >= int64(n) },
		"%d of %d tasks are archived, waiting for %d", archived(t, sp), tasks, n)
}
