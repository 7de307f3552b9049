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
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// mostCalls is how many system calls worker and shim make together for a round of a
// program that writes a line, the trip to Redis and the forking included. What the Go
// runtime does by itself, for threads, timers and memory, is not counted.
const mostCalls = 40

// callsOfPipes is how many more there are when a program runs for longer than some
// milliseconds: the shim passes its pipes on to the worker, by a message more. On a slow
// machine, a tracer makes every round such a one.
const callsOfPipes = 14

// ofTheRuntime are those that it makes by itself, also to interrupt what runs for long,
// strace's own, and the clock, which is a call on some machines only.
var ofTheRuntime = []string{
	"nanosleep", "clock_nanosleep", "futex", "epoll_pwait", "epoll_ctl", "sched_yield", "rt_sigreturn", "getpid", "tgkill", "restart_syscall",
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
	ofWorker := traced(t, w, run, []string{"-f", "-p", strconv.Itoa(d.Process.Pid)}, "ppoll", func(round []string) bool {
		// It writes to Redis once.
		return between(1, 2, count(round, "recvmsg")) && count(round, "write") == 1
	})
	var threads []string
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", shims[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range all {
		threads = append(threads, "-p", filepath.Base(thread))
	}
	ofShim := traced(t, w, run, threads, "close_range", func(round []string) bool { return between(1, 2, count(round, "sendmsg")) })
	most := mostCalls
	if count(ofWorker, "recvmsg") == 2 {
		most += callsOfPipes
	}
	n := len(ofWorker) + len(ofShim)
	t.Logf("worker and shim make %d system calls a round, at most %d: %v and %v", n, most, ofWorker, ofShim)
	if n > most {
		t.Errorf("worker and shim make %d system calls a round, want at most %d: %v and %v", n, most, ofWorker, ofShim)
	}
}

func between(least, most, n int) bool { return least <= n && n <= most }

func count(all []string, name string) (n int) {
	for _, s := range all {
		if s == name {
			n++
		}
	}
	return n
}

// traced are the calls of a typical round while strace, with these arguments, looks on.
func traced(t *testing.T, w *world, run func(n int), args []string, once string, whole func(round []string) bool) []string {
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
		if calls := typical(text, once, whole); calls != nil {
			return calls
		}
	}
	t.Fatalf("in 20 runs there were fewer than 10 whole rounds; see %s", file)
	return nil
}

// noise are calls that depend on how busy the machine is: those by which Go's runtime wakes
// the thread that waits for events, those that found nothing to do, and writes to the log, of
// which one may have several lines.
var noise = regexp.MustCompile(`^(?:read|write)\(\d+, "\\1(?:\\0){7}"|^write\(\d+, "\{\\"level|= -1 EAGAIN`)

// typical are the calls of a round that nothing has disturbed: the shortest of those that are
// whole. A round does not count in which somebody else has mounted something on this host: the
// worker reads the table of mounts again, from its beginning. Each round has the call once;
// what comes before the first one is a part of a round. It is nil if there are not enough.
func typical(traced []byte, once string, whole func(round []string) bool) []string {
	var rounds [][]string
	var round []string
	begun := false
	for _, call := range joined(string(traced)) {
		name, _, _ := strings.Cut(call, "(")
		if slices.Contains(ofTheRuntime, name) || noise.MatchString(call) {
			continue
		}
		if name == once {
			if begun && whole(round) && count(round, "lseek") == 0 {
				rounds = append(rounds, round)
			}
			round, begun = nil, true
		}
		round = append(round, name)
	}
	if len(rounds) < 10 {
		return nil
	}
	return slices.MinFunc(rounds, func(a, b []string) int { return len(a) - len(b) })
}

// line is one of strace's: which thread, if there are several, and its call, or the end of one
// that others came between.
var line = regexp.MustCompile(`(?m)^(\d+ +)?(?:<\.\.\. \w+ resumed>(.*)|(\w+\(.*?)(?: <unfinished \.\.\.>)?)$`)

// joined are the calls of a trace in the order in which they began.
func joined(traced string) (calls []string) {
	begun := map[string]int{} // by thread
	for _, m := range line.FindAllStringSubmatch(traced, -1) {
		if i, known := begun[m[1]]; m[3] == "" && known {
			calls[i] += m[2]
		} else if m[3] != "" {
			begun[m[1]] = len(calls)
			calls = append(calls, m[3])
		}
	}
	return calls
}
