package chaos

import (
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// program is run.sh: it writes what really happened into a ledger outside TDF, with
// how long the machine had been running when the program began, and now. The first
// word says how it behaves.
const program = `#!/bin/sh
read began _ </proc/uptime
export began
say() { read now _ </proc/uptime; echo "$TDF_TASK_ID $TDF_ROUND $1 $began $now" >> "$CHAOS_LEDGER"; }
beats() { for i in $(seq "$1"); do sleep 0.1; say beat; done; }
say start
case "$1" in
ok|brief) ;;
nap) sleep 0.3 ;;
moody) [ $(( ($(date +%N | sed 's/^0*//') / 1000) % 2 )) = 0 ] || { echo "in a bad mood" >&2; exit 1; } ;;
fail) echo "as always" >&2; exit 1 ;;
slow) [ "$TDF_ROUND" -ge 1 ] || beats 300 ;;
hang) beats 300 ;;
deaf) trap "" TERM HUP; beats 300 ;;
long) [ "$TDF_ROUND" -ge 1 ] || beats 60 ;;
huge) head -c 3000000 /dev/zero | tr '\0' x ;;
crash) [ "$TDF_ROUND" -ge 2 ] || kill -SEGV $$ ;;
mount) [ "$TDF_ROUND" -ge 1 ] || { mkdir m; mount --bind "$CHAOS_CANARY" m && say mount; kill -9 $$; } ;;
forks) for i in 1 2 3; do
	setsid sh -c 'trap "" TERM HUP; while sleep 0.2; do read now _ </proc/uptime; echo "$TDF_TASK_ID $TDF_ROUND beat $began $now" >> "$CHAOS_LEDGER"; done' >/dev/null 2>&1 &
done ;;
esac
say end
echo "done $TDF_TASK_ID"
`

// canary is a file in the directory that programs mount into theirs.
const canary = "alive\n"

// config is that of all members. The lease is short, so that many end.
const config = `[redis]
host=%s
[tdf]
namespace=%s
[server]
timeout_grace=1.5
worker_timeout=2
events=10000000
[worker]
slots=2
commands=off
labels=fetches=on
kill_grace=0.5
environment=CHAOS_LEDGER, CHAOS_CANARY
program_dir=%s
output_limit=64KiB
[manager]
handling_lease=2
[task_defaults]
`

// lease is [server] worker_timeout.
const lease = 2 * second

// kind is one way to behave, and how a task of it ends.
type kind struct {
	word                  string
	timeout               string
	maxFails, maxTimeouts string
	outcome               statemachine.State
	command               bool // any worker runs it that runs commands, also over HTTP
}

const (
	often = "200"
	inf   = "inf"
)

// kinds come in turn. Where a task is to end otherwise than succeeded it has
// little room to do so, and all others have much: disks fill up under them.
var kinds = []kind{
	{"ok", "3", often, inf, statemachine.Succeeded, false},
	{"long", inf, often, inf, statemachine.Succeeded, false}, // only the loss of its worker ends a round
	{"moody", "3", often, inf, statemachine.Succeeded, false},
	{"nap", "3", often, inf, statemachine.Succeeded, false},
	{"slow", "3", often, inf, statemachine.Succeeded, false},
	{"forks", "3", often, inf, statemachine.Succeeded, false},
	{"fail", "3", "2", inf, statemachine.Failed, false},
	{"huge", "3", often, inf, statemachine.Succeeded, false},
	{"hang", "2", often, "1", statemachine.TimedOut, false},
	{"deaf", "2", often, "1", statemachine.TimedOut, false},
	{"crash", "3", often, inf, statemachine.Succeeded, false},
	{"mount", "3", often, inf, statemachine.Succeeded, false},
}

// commands come in turn too. A round of those without a timeout that no worker knows of would never end.
var commands = []kind{
	{"ok", inf, often, inf, statemachine.Succeeded, true},
	{"moody", inf, often, inf, statemachine.Succeeded, true},
	{"nap", inf, often, inf, statemachine.Succeeded, true},
	{"long", inf, often, inf, statemachine.Succeeded, true},
	{"ok", inf, often, inf, statemachine.Succeeded, true},
	{"fail", inf, "2", inf, statemachine.Failed, true},
	{"nap", inf, often, inf, statemachine.Succeeded, true},
	{"crash", inf, often, inf, statemachine.Succeeded, true},
	{"ok", inf, often, inf, statemachine.Succeeded, true},
	{"slow", "3", often, inf, statemachine.Succeeded, true},
	{"nap", inf, often, inf, statemachine.Succeeded, true},
	{"hang", "2", often, "1", statemachine.TimedOut, true},
}

// brief tasks run on one worker only, and there are enough of them for it to claim ahead.
var brief = kind{"brief", "3", often, inf, statemachine.Succeeded, false}

func (k kind) spec() task.Definition {
	return storetest.Spec(func(s *task.Definition) {
		if k == brief {
			storetest.Set(s, "env", brief.word)
		}
		storetest.Set(s, "program", "chaos", "source", "rsync:../source/run.sh", "input", k.word, "labels", "fetches=on")
		if k.command {
			storetest.Set(s, "source", "command:chaos", "labels", task.CommandsLabel)
		}
		storetest.Set(s, "timeout", k.timeout, "max_fails", k.maxFails, "max_timeouts", k.maxTimeouts, "max_losses", inf)
	})
}
