package acceptance

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// mostCalls is how many system calls worker and shim make together for a round of a
// program that writes a line, the trip to Redis and the forking included. What the Go
// runtime does by itself, for threads, timers and memory, is not counted.
const mostCalls = 42

// ofTheRuntime are those that it makes by itself, strace's own, and the clock, which is a call on some machines only.
var ofTheRuntime = []string{
	"nanosleep", "clock_nanosleep", "futex", "epoll_pwait", "epoll_ctl", "sched_yield", "rt_sigreturn", "tgkill", "restart_syscall",
	"mmap", "munmap", "madvise", "getrandom", "timer_settime", "sigaltstack", "gettid", "clock_gettime",
}

// A round of a short program costs few system calls.
func TestCallsOfARound(t *testing.T) {
	t.Parallel()
	needRoot(t, "trace a shim")
	w := newWorld(t, "slots=1", "containment=group", "require_containment=true")
	w.server(t)
	d := w.worker(t, "w")
	spec := w.script(t, "echo", `echo "$1"`)
	run := func(n int) {
		t.Helper()
		specs := slices.Repeat([]task.Spec{spec}, n)
		for i := range specs {
			specs[i].Input = strconv.Itoa(i)
		}
		for _, id := range w.open(t, specs...) {
			w.await(t, id, sm.Succeeded)
		}
	}
	run(100) // until its directory is known well
	shims := shimsOf(t, d)
	if len(shims) != 1 {
		t.Fatalf("shims are %v", shims)
	}
	// One after the other: with two tracers at work, programs seem long, and long ones are not claimed ahead.
	ofWorker := traced(t, w, run, []string{"-f", "-p", strconv.Itoa(d.Process.Pid)}, "ppoll", "recvmsg", 2)
	var threads []string
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", shims[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range all {
		threads = append(threads, "-p", filepath.Base(thread))
	}
	ofShim := traced(t, w, run, threads, "close_range", "sendmsg", 1)
	t.Logf("the worker makes %d calls, the shim %d:\n%v\n%v", len(ofWorker), len(ofShim), ofWorker, ofShim)
	if n := len(ofWorker) + len(ofShim); n > mostCalls || n < 10 {
		t.Errorf("worker and shim make %d system calls a round, want at most %d", n, mostCalls)
	}
	if n := count(ofWorker, "write"); n < 2 || n > 3 {
		t.Errorf("the worker writes %d times a round, want once to Redis, and to its log when a round begins, when it has ended, or both at once", n)
	}
}

func count(all []string, name string) (n int) {
	for _, s := range all {
		if s == name {
			n++
		}
	}
	return n
}

// traced are the calls of a typical round while strace, with these arguments, looks on.
func traced(t *testing.T, w *world, run func(n int), args []string, once, message string, messages int) []string {
	t.Helper()
	file := filepath.Join(w.dir, once+".trace")
	cmd := exec.Command("strace", append([]string{"-o", file}, args...)...)
	said, err := os.Create(file + ".stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = said.Close() }()
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = wait.Receive(t, patience, done, "the end of strace") // an exit code of its own
	}()
	wait.Eventually(t, patience, func() bool {
		text, _ := os.ReadFile(said.Name())
		return bytes.Contains(text, []byte("attached"))
	}, "strace is attached; it says %v", late(func() string {
		text, _ := os.ReadFile(said.Name())
		return string(text)
	}))
	for range 20 { // until there were short rounds, on a busy machine too
		run(50)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if calls := typical(t, text, once, message, messages); calls != nil {
			return calls
		}
	}
	return nil
}

// wake is how Go's runtime wakes the thread that waits for events.
var wake = regexp.MustCompile(`(?m)^(?:\d+ +)?write\(\d+, "\\1(?:\\0){7}".*$`)

var call = regexp.MustCompile(`(?m)^(?:\d+ +)?(\w+)\(`)

// typical are the calls of a round that nothing has disturbed: one in ten was shorter. A
// tracer makes some take so long that their pipes are passed on, by a message more; those
// do not count. On a busy machine most are woken more often than they need, once for each
// output and once for the end of a program. Nor does a round count in which somebody else
// has mounted something on this host: the worker reads the table of mounts again, from its
// beginning. Each round has the call once; what comes before the first one is a part of a
// round. It is nil if there are not enough.
func typical(t *testing.T, traced []byte, once, message string, messages int) []string {
	t.Helper()
	var rounds [][]string
	var round []string
	begun := false
	for _, m := range call.FindAllSubmatch(wake.ReplaceAll(traced, nil), -1) {
		name := string(m[1])
		if slices.Contains(ofTheRuntime, name) {
			continue
		}
		if name == once {
			if n := count(round, message); begun && n > 0 && n <= messages && count(round, "lseek") == 0 {
				rounds = append(rounds, round)
			}
			round, begun = nil, true
		}
		round = append(round, name)
	}
	if len(rounds) < 10 {
		return nil
	}
	slices.SortFunc(rounds, func(a, b []string) int { return len(a) - len(b) })
	return rounds[len(rounds)/10]
}
