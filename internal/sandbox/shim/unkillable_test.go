package shim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// A process in a frozen cgroup of version 1 does not die of SIGKILL, like one
// that hangs in the kernel. It must not hold up the worker.
func TestUnkillableProgramIsGivenUp(t *testing.T) {
	t.Parallel()
	needRoot(t, "the freezer of cgroups")
	const freezer = "/sys/fs/cgroup/freezer"
	if _, err := os.Stat(freezer + "/cgroup.procs"); err != nil {
		t.Skipf("needs the freezer of cgroups version 1: %v", err)
	}
	eachLayer(t, func(t *testing.T, s *Slot) {
		ice := filepath.Join(freezer, "shim-test-"+strconv.Itoa(os.Getpid())+filepath.Base(t.Name()))
		if err := os.Mkdir(ice, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { wait.Eventually(t, 5*time.Second, func() bool { return os.Remove(ice) == nil }, "rmdir") })
		state := func(text string) {
			if err := os.WriteFile(ice+"/freezer.state", []byte(text), 0); err != nil {
				t.Error(err)
			}
		}
		m := newMarked(t, `echo 0 > $ICE/cgroup.procs; echo > ready; exec sleep 300`)
		p := m.program()
		p.Env = append(p.Env, "ICE="+ice)
		b := begin(t, s, p)
		m.awaitReady(t)
		state("FROZEN")
		t.Cleanup(func() { state("THAWED") })
		s.Kill()
		b.wait(t)
		if !errors.Is(b.err, ErrUnkillable) || b.result.Cause != Killed || b.result.ExitCode != -1 {
			t.Errorf("got %+v, %v", b.result, b.err)
		}
		if err := s.Close(); !errors.Is(err, ErrUnkillable) {
			t.Errorf("Close with a survivor: got %v", err)
		}
		if r, err := s.Run(context.Background(), p); r.Started || !errors.Is(err, ErrUnkillable) && !errors.Is(err, ErrShimLost) {
			t.Errorf("Run after that: got %+v, %v", r, err)
		}
		state("THAWED")
		expectClosed(t, s)
		m.expectNone(t, 0)
	})
}

// expectClosed closes a slot whose survivors can die by now, and again.
func expectClosed(t *testing.T, s *Slot) {
	t.Helper()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close without survivors: %v", err)
		}
	}
	if s.group != nil && s.group.FD() >= 0 {
		t.Error("the cgroup was not removed")
	}
}
