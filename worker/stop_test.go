package worker

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// sleeper is a program that writes, starts a child, says the id of its process
// group and waits.
const sleeper = `echo partial; printf warn >&2; sleep 600 & echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; wait`

// gone reports whether nothing of a process group runs any more. What is dead
// but not yet reaped by the system's first process does not count.
func gone(group string) func() bool {
	group = strings.TrimSpace(group)
	return func() bool {
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		return err == nil && !slices.ContainsFunc(stats, func(name string) bool {
			text, err := os.ReadFile(name)
			fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
			return err == nil && len(fields) > 2 && fields[2] == group && fields[0] != "Z" && fields[0] != "X"
		})
	}
}

func limits(timeout, maxTimeouts string) func(*task.Definition) {
	return func(s *task.Definition) { storetest.Set(s, "timeout", timeout, "max_timeouts", maxTimeouts) }
}

// A11: the worker stops its own overdue round, and nothing of it is left.
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pid := filepath.Join(t.TempDir(), "pid")
	id := s.open(t, s.script(t, "p", sleeper), input(pid), limits("3", "0"))
	w := s.start(t)
	group := awaitFile(t, pid)
	task := s.await(t, id, sm.TimedOut)
	wait.Eventually(t, time.Second, gone(group), "the process group is still there")
	checkFields(t, task, map[string]string{
		"timeouts": "1", "round": "0", "0:timeout": "*", "0:timed_out": "*", "0:executed": "-",
		"0:output": "partial\n", "0:error": "warn\nTERMINATED - execution timed out...", "0:signal": "terminated",
	})
	w.log.await(t, "task 1 was terminated (timeout)")
	end, err := sm.ParseTime(task.Fields["0:timed_out"])
	if took := end.Sub(task.Current.Running); err != nil || took < 3*sm.Second {
		t.Errorf("stopped after %s s, %v", took.Text(), err)
	}
	within(t, "a round with timeout = 3", task.Current.Running, end, 5500*time.Millisecond)
}

// A12: stamps and counters of a task that times out twice.
func TestTimeoutOpensTheNextRound(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pid := filepath.Join(t.TempDir(), "pid")
	id := s.open(t, s.script(t, "p", sleeper), input(pid), limits("4", "1"))
	s.start(t)
	task := s.await(t, id, sm.TimedOut)
	checkFields(t, task, map[string]string{
		"timeouts": "2", "round": "1", "0:timeout": "*", "0:timed_out": "-", "1:open": "*",
		"1:timeout": "*", "1:timed_out": "*", "0:output": "partial\n", "1:output": "partial\n",
	})
	checkContains(t, "log", task.Fields["log"], "running -> timeout", "timeout -> open", "timeout -> timed_out")
}

// A program that ignores SIGTERM is killed after the grace.
func TestTimeoutOfStubbornProgram(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pid := filepath.Join(t.TempDir(), "pid")
	id := s.open(t, s.script(t, "p", `trap "" TERM; `+sleeper), input(pid), limits("3", "0"))
	s.start(t, func(o *options) { o.KillGrace = 0 }, setting(t, "kill_grace=1.2"))
	group := awaitFile(t, pid)
	task := s.await(t, id, sm.TimedOut)
	if took := storetest.Stamps(task, 0)["timeout"].Sub(task.Current.Running); took < 4200*sm.Millisecond {
		t.Errorf("killed after %s s, before timeout and grace are over", took.Text())
	}
	if !gone(group)() {
		t.Error("the process group outlived its round")
	}
	checkFields(t, task, map[string]string{"0:signal": "killed"})
}

// A16: end_before passes while the program runs; the server's word wins.
func TestEndBeforeStopsTheRound(t *testing.T) {
	t.Parallel()
	for _, serverFirst := range []bool{true, false} {
		t.Run("server first "+strconv.FormatBool(serverFirst), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			pid := filepath.Join(t.TempDir(), "pid")
			now, err := s.Store.Now(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			id := s.open(t, s.script(t, "p", sleeper), input(pid),
				func(sp *task.Definition) { storetest.Set(sp, "end_before", now.Add(6*sm.Second).Text()) })
			w := s.start(t)
			group := awaitFile(t, pid)
			if serverFirst {
				s.takeBack(t, id)
			}
			wait.Eventually(t, patience, gone(group), "the process group is still there")
			if serverFirst {
				w.log.await(t, "could not mark task 1 as executed")
				checkFields(t, s.Task(t, id), map[string]string{"state": "expired", "0:output": "-", "0:error": "-"})
				return
			}
			s.await(t, id, sm.Executed)
			task := s.settle(t, id, sm.Expired)
			checkFields(t, task, map[string]string{"fails": "0", "0:error": "warn\nTERMINATED - end_before has passed"})
		})
	}
}

// The end of the worker costs a running task nothing.
func TestShutdownHandsBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pid := filepath.Join(t.TempDir(), "pid")
	s.queue(t, "q")
	id := s.open(t, s.script(t, "p", sleeper), input(pid), inQueue("q"))
	w := s.start(t)
	group := awaitFile(t, pid)
	begun := time.Now()
	w.stop(t)
	wait.Within(t, "stopping", begun, time.Now(), 2*time.Second)
	if !gone(group)() {
		t.Error("the process group outlived its worker")
	}
	task := s.Task(t, id)
	checkFields(t, task, map[string]string{
		"state": "open", "round": "1", "releases": "1", "fails": "0", "timeouts": "0",
		"1:open": "*", "0:output": "-", "0:error": "-",
	})
	checkContains(t, "log", task.Fields["log"], "handing back task 1: the worker stops", "running -> open")
	if err := s.Raw.ZScore(t.Context(), s.Key("ready:q:::0"), "a1").Err(); err != nil {
		t.Errorf("the task does not wait in its bucket: %v", err)
	}
	other := s.start(t, func(o *options) { o.Name = "other" })
	other.log.await(t, "claimed task 1")
}

func TestLifecycle(t *testing.T) {
	s := newSite(t)
	made := 0
	daemontest.Battery{
		New: func(tb testing.TB) daemontest.Runner {
			made++
			o := s.options(tb, s.Dial(tb))
			o.Name = "w" + strconv.Itoa(made)
			w, err := assemble(o)
			if err != nil {
				tb.Fatal(err)
			}
			return w
		},
		Ready: func(d daemontest.Runner) <-chan struct{} {
			w, ok := d.(*Worker)
			if !ok {
				t.Fatalf("a %T is no worker", d)
			}
			return w.ready
		},
		SecondRun: ErrStarted,
	}.Exercise(t)
}
