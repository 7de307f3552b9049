package acceptance

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A04, A07, A20, A46: the whole life of a task between the three programs, with
// the exact lines of its log.
func TestLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server, worker, archiver := w.all(t)
	spec := w.script(t, "p", `printf 'a\nb\n'`)
	spec.Input = "1 2"
	id := w.open(t, spec)[0]
	task := w.archived(t, id, sm.Succeeded)
	checkFields(t, task, map[string]string{
		"state": "archived", "outcome": "succeeded", "round": "0", "fails": "0", "timeouts": "0",
		"0:worker": "w", "0:output": "a\nb\n", "0:error": "", "0:exit_code": "0",
		"0:open": "*", "0:running": "*", "0:executed": "*", "0:succeeded": "*", "0:archived": "*",
	})
	path := strings.TrimPrefix(spec.Source, "rsync:")
	checkLog(t, task.Fields["log"],
		"w          moving task 1: open -> running",
		"w          executing task 1: p 1 2",
		"w          attempting to fetch program 'p' from '"+spec.Source+"'",
		"w          rsyncing run.sh from "+path,
		"w          fetched program 'p'",
		"w          moving task 1: running -> executed",
		"server     moving task 1: executed -> succeeded",
		"tdf-manager moving task 1: succeeded -> archived")
	worker.Says(t, "moving task 1: running -> executed") // after Redis has it
	contains(t, "the worker's log", worker.Log.String(), "moving task 1: open -> running", "claimed task 1", "executing task 1: p 1 2")
	server.Says(t, `"from":"executed","to":"succeeded"`)
	archiver.Says(t, `"tasks":1`)
	w.sound(t)
}

// checkLog compares the lines of a task's log; each begins with a time.
func checkLog(t *testing.T, log string, want ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(log) {
		when, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		if _, err := time.Parse(time.DateTime, when); err != nil || !ok {
			t.Errorf("line %q does not begin with a time and a dash", line)
		}
		got = append(got, rest)
	}
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("log:\n%s\nwant:\n%s", a, b)
	}
}

// A05, A06: a task waits for its start_after, and others do not wait for it.
func TestStartAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.all(t)
	spec := w.script(t, "p", "true")
	w.archived(t, w.open(t, spec)[0], sm.Succeeded) // the worker is at work, however slowly it began
	later := spec
	start := w.redisNow(t).Add(3 * sm.Second)
	later.StartAfter = at(start)
	waiting := w.open(t, later)[0]
	first := w.archived(t, w.open(t, spec)[0], sm.Succeeded)
	if state := w.state(t, waiting); state != sm.Open && w.redisNow(t) < start {
		t.Errorf("before its start_after the task is %s", state)
	}
	task := w.archived(t, waiting, sm.Succeeded)
	if task.Current.Running < start {
		t.Error("claimed before start_after")
	}
	within(t, "from start_after to the claim", start, task.Current.Running, 2*sm.Second)
	if first.Current.Running >= task.Current.Running {
		t.Error("the task that was due had to wait for the other one")
	}
}

// A08 to A10, A12, A19, A20, A40, A41: what becomes of rounds that fail or time
// out, as all three programs see it.
func TestRounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.all(t)
	const hang = "sleep 600"
	cases := map[string]struct {
		body    string
		spec    task.Spec
		outcome sm.State
		fields  map[string]string
	}{
		"A08": {"printf x >&2", task.Spec{}, sm.Failed, map[string]string{
			"fails": "1", "round": "0", "0:error": "x", "0:failure": "*", "0:failed": "*", "1:open": "-",
		}},
		"A09": {"printf $TDF_ROUND >&2", task.Spec{Retry: task.Retry{Limit: task.AtMost(2)}}, sm.Failed, map[string]string{
			"fails": "3", "round": "2", "0:error": "0", "1:error": "1", "2:error": "2", "1:open": "*", "2:open": "*", "3:open": "-",
		}},
		"A10": {"[ $TDF_ROUND = 1 ] || echo no >&2", task.Spec{Retry: task.Retry{Limit: task.AtMost(1)}}, sm.Succeeded, map[string]string{
			"fails": "1", "round": "1", "0:error": "no\n", "1:error": "",
		}},
		"A12": {"echo partial; " + hang, task.Spec{Timeout: time.Second, MaxTimeouts: task.AtMost(1)}, sm.TimedOut, map[string]string{
			"timeouts": "2", "round": "1", "0:timeout": "*", "0:timed_out": "-", "1:open": "*", "1:timeout": "*",
			"1:timed_out": "*", "0:output": "partial\n", "1:output": "partial\n",
		}},
		"A19": {"case $TDF_ROUND in 0) " + hang + ";; 1) echo no >&2;; *) echo yes;; esac",
			task.Spec{Timeout: 2 * time.Second, MaxTimeouts: task.AtMost(1), Retry: task.Retry{Limit: task.AtMost(1)}}, sm.Succeeded, map[string]string{
				"fails": "1", "timeouts": "1", "round": "2", "0:timeout": "*", "1:error": "no\n", "2:output": "yes\n",
			}},
		"A40": {"exit 7", task.Spec{}, sm.Failed, map[string]string{"0:exit_code": "7", "0:error": "exit status 7"}},
		"A40-stderr": {"exit 7", task.Spec{FailOn: task.FailOnStderr}, sm.Succeeded, map[string]string{
			"0:exit_code": "7", "0:error": "",
		}},
		"A41": {"echo warn >&2", task.Spec{}, sm.Failed, map[string]string{"0:exit_code": "0", "0:error": "warn\n"}},
	}
	ids := map[string]int64{}
	for name, c := range cases {
		spec := c.spec
		program := w.script(t, name, c.body)
		spec.Program, spec.Source = program.Program, program.Source
		ids[name] = w.open(t, spec)[0]
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			task := w.archived(t, ids[name], c.outcome)
			want := map[string]string{"state": "archived", "outcome": string(c.outcome)}
			maps.Copy(want, c.fields)
			want[sm.RoundField(task.Round, string(c.outcome))] = "*"
			want[sm.RoundField(task.Round, string(sm.Archived))] = "*"
			checkFields(t, task, want)
		})
	}
	w.sound(t)
}

// A15, A20: a task whose end has come is not run, even by a worker that is
// there before any server.
func TestOverdueIsNotClaimed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ledger := w.dir + "/ledger"
	overdue := w.script(t, "p", `echo ran >> "$1"`)
	overdue.Input = ledger
	good := overdue
	overdue.EndBefore = at(w.redisNow(t).Add(-sm.Second))
	ids := w.open(t, overdue, good)
	w.worker(t, "w")
	w.await(t, ids[1], sm.Executed)
	if state := w.state(t, ids[0]); state != sm.Open {
		t.Errorf("the overdue task is %s before a server has come", state)
	}
	w.server(t)
	w.archiver(t)
	task := w.archived(t, ids[0], sm.Expired)
	checkFields(t, task, map[string]string{"0:expired": "*", "0:running": "-"})
	w.archived(t, ids[1], sm.Succeeded)
	if got := content(t, ledger); got != "ran" {
		t.Errorf("run.sh wrote %q, want one line", got)
	}
}

// T6: a failure and a timeout are stamps and lines of the log, passed in one
// step: no task is ever listed in a set of their own.
func TestNoTransientSets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.all(t)
	failing, hanging := w.script(t, "p", "false"), w.script(t, "q", "sleep 600")
	failing.Retry.Limit = task.AtMost(20)
	hanging.Timeout = 500 * time.Millisecond
	ids := w.open(t, failing, hanging)
	ended := func() bool { return w.state(t, ids[0]) == sm.Archived && w.state(t, ids[1]) == sm.Archived }
	wait.Eventually(t, patience, func() bool {
		if n := w.Raw.Exists(t.Context(), w.Key("failure"), w.Key("timeout")).Val(); n != 0 {
			t.Fatal("a task was seen in a transient set")
		}
		return ended()
	}, "the tasks have not ended")
	contains(t, "log", w.Task(t, ids[0]).Fields["log"], "executed -> failure", "failure -> open", "failure -> failed")
	contains(t, "log", w.Task(t, ids[1]).Fields["log"], "running -> timeout", "timeout -> timed_out")
}
