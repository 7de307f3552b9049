package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// family is a program with a child and a grandchild in the background; it runs
// body at the end. The process ids are in files named child and grandchild.
func family(t *testing.T, body string) string {
	t.Helper()
	return script(t, `(sh -c 'echo $$ > grandchild; exec sleep 300' & exec sleep 300) &
echo $! > child
until [ -s grandchild ]; do sleep 0.01; done
echo partial
`+body)
}

// expectDead fails unless the processes named in files of dir have ended.
func expectDead(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, file := range files {
		pid := readPid(filepath.Join(dir, file))
		if pid == 0 {
			t.Fatalf("%s was never started", file)
		}
		killAtEnd(t, pid)
		if alive(pid) {
			t.Errorf("%s (%d) survived its round", file, pid)
		}
	}
}

// A11: timeout, partial output kept, nothing of the group left within a second.
func TestTimeoutKillsTheGroup(t *testing.T) {
	t.Parallel()
	const timeout = 1500 * time.Millisecond
	dir := family(t, "exec sleep 300")
	r := mustRun(t, Spec{Dir: dir, Timeout: timeout, Grace: 10 * time.Second})
	if !r.TimedOut || r.Cancelled || r.ExitCode != -1 || r.Signal != syscall.SIGTERM {
		t.Errorf("got %+v", r)
	}
	if string(r.Stdout) != "partial\n" {
		t.Errorf("partial output lost: %q", r.Stdout)
	}
	if r.Duration < timeout || r.Duration > timeout+time.Second {
		t.Errorf("ended after %v, timeout was %v", r.Duration, timeout)
	}
	expectDead(t, dir, "child", "grandchild")
}

func TestIgnoredTermIsFollowedByKill(t *testing.T) {
	t.Parallel()
	// The busy wait is the shell's own: it has no child that TERM could end.
	dir := script(t, `trap 'echo asked' TERM; echo 1 > ready; while :; do :; done`)
	begin := time.Now()
	r, err := runUntil(t, "ready", Spec{Dir: dir, Grace: 300 * time.Millisecond})
	if err != nil || !r.Cancelled || r.Signal != syscall.SIGKILL || string(r.Stdout) != "asked\n" {
		t.Errorf("got %+v, stdout %q, %v", r, r.Stdout, err)
	}
	if took := time.Since(begin); took < 300*time.Millisecond || took > 10*time.Second {
		t.Errorf("took %v with a grace of 0.3s", took)
	}
}

func TestNoGraceKillsAtOnce(t *testing.T) {
	t.Parallel()
	dir := script(t, `trap 'echo asked' TERM; while :; do :; done`)
	r := mustRun(t, Spec{Dir: dir, Timeout: 200 * time.Millisecond})
	if !r.TimedOut || r.Signal != syscall.SIGKILL || len(r.Stdout) != 0 {
		t.Errorf("got %+v, stdout %q", r, r.Stdout)
	}
}

func TestProgramMayEndOrderlyInItsGrace(t *testing.T) {
	t.Parallel()
	dir := script(t, `trap 'echo saved; exit 3' TERM; echo 1 > ready; while :; do :; done`)
	r, err := runUntil(t, "ready", Spec{Dir: dir, Grace: time.Minute})
	if err != nil || !r.Cancelled || r.ExitCode != 3 || r.Signal != 0 || string(r.Stdout) != "saved\n" {
		t.Errorf("got %+v, stdout %q, %v", r, r.Stdout, err)
	}
}

func TestCancelKillsTheGroup(t *testing.T) {
	t.Parallel()
	dir := family(t, "echo 1 > ready; exec sleep 300")
	r, err := runUntil(t, "ready", Spec{Dir: dir, Timeout: time.Minute, Grace: 10 * time.Second})
	if err != nil || !r.Cancelled || r.TimedOut || r.Signal != syscall.SIGTERM || string(r.Stdout) != "partial\n" {
		t.Errorf("got %+v, %v", r, err)
	}
	expectDead(t, dir, "child", "grandchild")
}

func TestNormalEndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"ok": "exit 0", "failed": "exit 3", "signal": "kill -9 $$"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := family(t, body)
			begin := time.Now()
			r := mustRun(t, Spec{Dir: dir, Timeout: time.Minute})
			if r.TimedOut || r.Cancelled || string(r.Stdout) != "partial\n" {
				t.Errorf("got %+v", r)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("Run took %v although only the background held stdout", took)
			}
			expectDead(t, dir, "child", "grandchild")
		})
	}
}

// The background child ignores TERM; SIGKILL still gets it when run.sh obeys.
func TestStubbornChildIsSwept(t *testing.T) {
	t.Parallel()
	dir := script(t, `sh -c 'trap "" TERM; echo $$ > child; while :; do sleep 300; done' &
exec sleep 300`)
	r, err := runUntil(t, "child", Spec{Dir: dir, Grace: 10 * time.Second})
	if err != nil || !r.Cancelled || r.Signal != syscall.SIGTERM {
		t.Errorf("got %+v, %v", r, err)
	}
	expectDead(t, dir, "child")
}

// A worker that is killed with SIGKILL takes the program with it.
func TestProgramDiesWithTheWorker(t *testing.T) {
	t.Parallel()
	dir := script(t, `echo $$ > pid; exec sleep 300`)
	worker := exec.Command(os.Args[0], dir)
	worker.Env = append(os.Environ(), helperVariable+"=run")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "pid")
	eventually(t, "program started", func() bool { return readPid(name) != 0 })
	pid := readPid(name)
	killAtEnd(t, pid)
	if !alive(pid) {
		t.Fatal("the program ended by itself")
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	eventually(t, "program dead", func() bool { return !alive(pid) })
}

// The parent-death signal comes when the thread ends that started the program,
// so no other goroutine may end that thread meanwhile.
func TestProgramOutlivesOtherThreads(t *testing.T) {
	t.Parallel()
	dir := script(t, `sleep 1; echo done`)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			r := mustRun(t, Spec{Dir: dir})
			if string(r.Stdout) != "done\n" || r.Signal != 0 {
				t.Errorf("got %+v", r)
			}
		})
	}
	for range 200 {
		wg.Go(func() {
			// A goroutine that ends while locked takes its thread along.
			runtime.LockOSThread()
			<-time.After(500 * time.Millisecond)
		})
	}
	wg.Wait()
}

func TestGroupOfZombiesCountsAsGone(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	pid := cmd.Process.Pid
	if !hasLiveMember(pid) {
		t.Error("a sleeping process is taken for dead")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := waitEnded(pid); err != nil {
		t.Fatal(err)
	}
	if !awaitGone(pid) {
		t.Error("a zombie is taken for alive")
	}
}

// A program sees descriptors 0, 1 and 2, whatever its worker opened or inherited.
func TestProgramSeesOnlyStandardDescriptors(t *testing.T) {
	t.Parallel()
	// 3 is the directory that ls itself lists.
	const want = "0\n1\n2\n3\n"
	dir := script(t, `exec ls -1 /proc/self/fd`)
	for _, mode := range []string{"seal", "seal-listed"} {
		worker := exec.Command("/bin/sh", "-c", `exec 9</dev/null; exec "$0" "$1"`, os.Args[0], dir)
		worker.Env = append(os.Environ(), helperVariable+"="+mode)
		out, err := worker.CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: %q, %v; want %q", mode, out, err, want)
		}
	}
}
