package shim

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

func TestKillDescendants(t *testing.T) {
	t.Parallel()
	m := newMarked(t, `sleep 300 & setsid sh -c 'sleep 300; true' & echo > ready; while :; do wait; sleep 300; done`)
	cmd := exec.CommandContext(context.Background(), "./run.sh")
	cmd.Dir, cmd.Env = m.dir, m.program().Env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	m.awaitReady(t)
	wait.Eventually(t, within, func() bool { return len(m.alive()) == 4 }, "all four are there")
	first := m.alive()
	if n := killDescendants(cmd.Process.Pid); n < 2 { // the shell may end by itself when its child does
		t.Errorf("killed %d of %v", n, first)
	}
	wait.Eventually(t, within, func() bool { return len(m.alive()) <= 2 }, "the three are gone")
	if parentOf(cmd.Process.Pid) != os.Getpid() {
		t.Error("it killed the root too")
	}
}

// What cleared its environment is found as a descendant while the shim is there,
// even one that is frozen.
func TestFrozenShimLeavesNothingAnonymous(t *testing.T) {
	t.Parallel()
	eachLayer(t, func(t *testing.T, s *Slot) {
		name := fmt.Sprintf("30%d.%d", os.Getpid(), s.PID())
		m := newMarked(t, `(env -i setsid sh -c 'sleep `+name+`; true' &) ; echo > ready; exec sleep 300`)
		b := begin(t, s, m.program())
		m.awaitReady(t)
		wait.Eventually(t, within, func() bool { return sleepers(name) == 1 }, "it sleeps")
		_ = unix.Kill(s.PID(), unix.SIGSTOP)
		s.Kill()
		b.wait(t)
		if n := sleepers(name); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

// sleepers counts by arguments.
func sleepers(name string) int { return len(sleepersOf(name)) }

func sleepersOf(name string) (pids []int) {
	for _, pid := range processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.HasPrefix(string(line), "sleep\x00"+name) {
			pids = append(pids, pid)
		}
	}
	return pids
}
