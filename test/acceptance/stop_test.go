package acceptance

import (
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// stubborn writes, starts a child that ignores SIGTERM, and waits.
const stubborn = `echo partial; printf warn >&2
(trap "" TERM; echo > "$1"; while :; do sleep 0.05; echo more; done) &
wait`

// A11: nothing of an overdue round is left a second after its timeout.
func TestTimeoutEndsTheGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "task_output_filename=out")
	_, worker, _ := w.all(t)
	spec := w.script(t, "p", stubborn)
	const timeout = 5 // seconds: a busy machine must be able to begin within it
	spec.Input, spec.Timeout = filepath.Join(w.dir, "begun"), timeout*time.Second
	id := w.open(t, spec)[0]
	made(t, spec.Input)
	if len(w.running()) == 0 {
		t.Fatal("the program is not seen: the test would prove nothing")
	}
	end := w.Task(t, id).Current.Running.Add(timeout * sm.Second)
	wait.Eventually(t, patience, func() bool { return len(w.running()) == 0 }, "the program is still there")
	within(t, "from the timeout to the end of the program", end, w.redisNow(t), sm.Second)
	task := w.archived(t, id, sm.TimedOut)
	checkFields(t, task, map[string]string{
		"timeouts": "1", "round": "0", "0:timeout": "*", "0:timed_out": "*", "0:executed": "-",
		"0:error": "warn\nTERMINATED - execution timed out...",
	})
	contains(t, "output", task.Fields["0:output"], "partial\n")
	worker.Says(t, "task 1 was terminated (timeout)")
	if out, err := os.ReadFile(filepath.Join(w.dir, "w", "out")); err != nil || string(out) != task.Fields["0:output"] {
		t.Errorf("the output file was written to after the round: %q, %v", out, err)
	}
}

// freeze opens a task, starts a worker named frozen and stops it (SIGSTOP) once
// the task runs.
func (w *world) freeze(t *testing.T, spec task.Spec) (id int64, worker *daemon) {
	t.Helper()
	id = w.open(t, spec)[0]
	worker = w.worker(t, "frozen")
	content(t, spec.Input+".0")
	worker.Signal(t, syscall.SIGSTOP)
	return id, worker
}

// round says that a round has begun, and ends at once, except the first one and
// those that are told to wait for a file.
const round = `echo x > "$1.tmp"; mv "$1.tmp" "$1.$TDF_ROUND"
while [ $TDF_ROUND = 0 ] || [ ! -e "$1.go" ]; do sleep 0.05; done
echo "round $TDF_ROUND by $TDF_WORKER"`

// laterLease ends after the time of the rounds that are frozen here, so that their end is no loss.
const laterLease = "server.worker_timeout=6"

// lateHandBack is the late word of a worker that finds its lease over.
const lateHandBack = "could not hand back task 1 (taken back by the server?)"

// thaw lets the worker go on and checks that its late word is refused, logged,
// and changes nothing.
func (w *world) thaw(t *testing.T, id int64, worker *daemon, refusal string) {
	t.Helper()
	before := w.hash(t, id)
	worker.Signal(t, syscall.SIGCONT)
	worker.Says(t, refusal)
	if after := w.hash(t, id); !maps.Equal(before, after) {
		t.Errorf("the late report changed the task:\n%v\n%v", before, after)
	}
}

// A13, A23: a worker is frozen, the server takes its task back and another
// worker runs the next round; whatever the first one says later changes nothing.
func TestFrozenWorker(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*testing.T, *world, int64, string){
		"A13 all is over": func(t *testing.T, w *world, id int64, release string) {
			w.file(t, release, "", 0o600)
			w.archived(t, id, sm.Succeeded)
		},
		"A23 the next round runs": func(t *testing.T, w *world, id int64, _ string) {
			if task := w.await(t, id, sm.Running); task.Round != 1 {
				t.Errorf("round %d runs, want 1", task.Round)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			server := w.serverWith(t, "server", laterLease)
			w.archiver(t)
			spec := w.script(t, "p", round)
			spec.Input, spec.Timeout, spec.MaxTimeouts = filepath.Join(w.dir, "begun"), 4*time.Second, task.AtMost(1)
			id, frozen := w.freeze(t, spec)
			task := w.await(t, id, sm.Open)
			checkFields(t, task, map[string]string{"timeouts": "1", "round": "1", "0:timeout": "*", "1:timeout": "-", "1:open": "*"})
			w.worker(t, "other")
			content(t, spec.Input+".1")
			meanwhile(t, w, id, "begun.go")
			w.thaw(t, id, frozen, lateHandBack)
			w.file(t, "begun.go", "", 0o600)
			checkSecondRound(t, w.archived(t, id, sm.Succeeded))
			if server.Ended() {
				t.Error("the server has ended")
			}
			w.sound(t)
		})
	}
}

func checkSecondRound(t *testing.T, task *tasks.TaskHeader) {
	t.Helper()
	checkFields(t, task, map[string]string{
		"timeouts": "1", "round": "1", "losses": "-", "0:worker": "frozen", "0:output": "-", "0:error": "-",
		"1:worker": "other", "1:output": "round 1 by other\n", "1:error": "",
	})
}

// A16: end_before passes while the worker is frozen; its result is dropped. On a busy machine it takes seconds until the program has
// begun, and the lease must end after that time too.
func TestExpiresWhileRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serverWith(t, "server", "server.worker_timeout=30")
	w.archiver(t)
	spec := w.script(t, "p", round)
	spec.Input, spec.EndBefore = filepath.Join(w.dir, "begun"), at(w.redisNow(t).Add(12*sm.Second))
	id, frozen := w.freeze(t, spec)
	w.archived(t, id, sm.Expired)
	w.thaw(t, id, frozen, lateHandBack)
	checkFields(t, w.Task(t, id), map[string]string{
		"0:expired": "*", "0:output": "-", "0:error": "-", "0:executed": "-", "fails": "0", "timeouts": "0",
	})
	w.sound(t)
}
