package acceptance

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// retry --failed --match opens those that failed like that again, and no others;
// a second time it opens nothing.
func TestRetryWhatFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.node(t, "n1", "slots=2")
	full := w.script(t, "full", `[ -e "$1" ] || { echo "cp: No space left on device" >&2; exit 1; }`)
	full.Input = w.dir + "/room"
	ids := w.open(t, full, w.script(t, "broken", "echo segmentation fault >&2"), full, w.script(t, "fine", "echo No space left, but fine"))
	ends := []sm.State{sm.Failed, sm.Failed, sm.Failed, sm.Succeeded}
	for i, id := range ids {
		w.await(t, id, ends[i])
	}
	w.file(t, "room", "", 0o600)
	args := []string{"retry", "--failed", "--match", "No space left"}
	contains(t, "the dry run", w.text(t, append(args, "--dry-run")...), "would open 2 again")
	opened, ok := w.object(t, 0, args...)["opened"].([]any)
	if !ok || len(opened) != 2 {
		t.Fatalf("opened %v", opened)
	}
	for _, of := range []int64{ids[0], ids[2]} { // in whichever order they failed
		id, err := strconv.ParseInt(w.Task(t, of).Fields["retried_by"], 10, 64)
		if err != nil || id <= ids[3] || id > ids[3]+2 {
			t.Fatalf("task %d is retried by %d, %v; want one of the two new ones", of, id, err)
		}
		task := w.await(t, id, sm.Succeeded)
		checkFields(t, task, map[string]string{"retry_of": id2text(of), "program": "full", "input": full.Input, "round": "0"})
		checkFields(t, w.Task(t, of), map[string]string{"retried_by": id2text(id), "state": "failed"})
	}
	again := w.object(t, 0, args...)
	if list, _ := again["opened"].([]any); len(list) != 0 {
		t.Errorf("the second time opened %v", again)
	}
	if last, err := w.Store.LastID(t.Context()); err != nil || last != ids[3]+2 {
		t.Errorf("the last task is %d, %v; want %d", last, err, ids[3]+2)
	}
	w.sound(t)
}

// A replay of a program that always does the same is the same, of one that prints
// the time it is not, and neither is one whose exit code differs.
func TestReplayCompares(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.node(t, "n1")
	for name, c := range map[string]struct {
		body   string
		end    sm.State
		code   int
		output string
	}{
		"same":  {`echo "result of $1"; echo warn >&2; exit 3`, sm.Failed, 0, "same"},
		"clock": {`cat /proc/uptime; date +%s%N`, sm.Succeeded, cli.ExitTaskFailed, "differs"},
		"exit":  {`echo result; [ ! -e "$1" ] || exit 4; : >"$1"`, sm.Succeeded, cli.ExitTaskFailed, "same"},
	} {
		spec := w.script(t, name, c.body)
		spec.Input = w.dir + "/" + name + ".was-here"
		id := w.open(t, spec)[0]
		w.await(t, id, c.end)
		object := w.object(t, c.code, "replay", id2text(id), "--timeout", "20")
		if object["same"] != (c.code == 0) || object["output"] != c.output || object["program"] != "same" {
			t.Errorf("%s: the replay says %v", name, object)
		}
		replay, _ := object["replay"].(float64)
		checkFields(t, w.Task(t, int64(replay)), map[string]string{"replay_of": id2text(id), "replay_round": "0", "max_fails": "0"})
	}
}

// Backoff: after a failure a task rests, longer each time, and is claimed when that
// is over and not before.
func TestBackoff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.worker(t, "w", "sleep_after_no_process_claimed=0.2")
	id := w.submitted(t, w.script(t, "p", "[ $TDF_ROUND = 2 ]"), "--max-fails", "2", "--retry-delay", "0.5", "--retry-backoff", "2")
	rests := w.submitted(t, w.script(t, "q", "false"), "--max-fails", "2", "--retry-delay", "600")
	w.reopened(t, rests)
	contains(t, "why", w.text(t, "why", id2text(rests)), "rests")
	task := w.await(t, id, sm.Succeeded)
	for n, rest := range []sm.Duration{sm.Second / 2, sm.Second} {
		failed, claimed := storetest.Stamps(task, n)["executed"], storetest.Stamps(task, n+1)["running"]
		if claimed.Sub(failed) < rest {
			t.Errorf("claimed %s s after failure %d, want %s s at least", claimed.Sub(failed).Text(), n+1, rest.Text())
		}
		within(t, "from a failure to the next claim", failed, claimed, rest+sm.Second)
	}
}

// After a fatal exit code a task is not run again; where exit codes to retry are
// given, only after these.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.node(t, "n1", "slots=4")
	w.queue(t, "q", "default_fatal_exit_codes=7", "default_max_fails=5")
	for name, c := range map[string]struct {
		body, fails string
		args        []string
	}{
		"fatal at once":    {"exit 7", "1", []string{"--max-fails", "5", "--fatal-exit-codes", "7,9"}},
		"fatal later":      {"[ $TDF_ROUND = 2 ] && exit 9; exit 1", "3", []string{"--max-fails", "5", "--fatal-exit-codes", "7,9"}},
		"of the queue":     {"exit 7", "1", []string{"--queue", "q"}},
		"another":          {"exit 1", "6", []string{"--queue", "q"}},
		"to retry":         {"exit 75", "3", []string{"--max-fails", "2", "--retry-exit-codes", "75"}},
		"to retry no more": {"[ $TDF_ROUND = 0 ] && exit 75; exit 1", "2", []string{"--max-fails", "5", "--retry-exit-codes", "75"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := w.script(t, strings.ReplaceAll(name, " ", "-"), c.body)
			task := w.await(t, w.submitted(t, p, c.args...), sm.Failed)
			checkFields(t, task, map[string]string{"fails": c.fails, "faults": "-"})
		})
	}
}

// With charge=program, a source that is not there is no fail of the task: it counts
// as faults, and ends the task when there are too many of them.
func TestFaultsAreNotCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.node(t, "n1", "slots=2")
	gone := task.Spec{Program: "gone", Source: newShelf(t, w, nil).url + "/gone.tar"}
	id := w.submitted(t, gone, "--pin", "off", "--charge", "program", "--max-faults", "3")
	task := w.await(t, id, sm.Failed)
	checkFields(t, task, map[string]string{
		"fails": "0", "faults": "4", "round": "3", "0:class": "fetch", "3:class": "fetch", "4:open": "-",
	})
	contains(t, "the error", task.Fields["3:error"], "404")
	contains(t, "why", w.text(t, "why", id2text(id)), "fault")
	charged := w.await(t, w.submitted(t, gone, "--pin", "off", "--max-fails", "1"), sm.Failed)
	checkFields(t, charged, map[string]string{"fails": "2", "faults": "-", "round": "1", "1:class": "fetch"})
}

// D18: a program that cannot be started, here for want of its interpreter, does not
// lose the task: it is run as soon as that is there, and nothing is charged for it.
func TestStartFailureKeepsTheTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.node(t, "n1")
	shell := w.dir + "/sh"
	file := w.file(t, "sources/odd/run.sh", "#!"+shell+"\necho started\n", 0o755)
	odd := task.Spec{Program: "odd", Source: "rsync:" + file}
	id := w.submitted(t, odd, "--charge", "program", "--max-faults", "1000", "--retry-delay", "0.1")
	w.reopened(t, id)
	link(t, "/bin/sh", shell)
	task := w.await(t, id, sm.Succeeded)
	checkFields(t, task, map[string]string{"fails": "0", "faults": "*", "0:class": "host", "0:error": "*"})
	if out := last(task, "output"); out != "started\n" {
		t.Errorf("the last round wrote %q", out)
	}
	contains(t, "the error of the first round", task.Fields["0:error"], shell)
	w.sound(t)
}
