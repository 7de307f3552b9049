package shim

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/wait"
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
		state("THAWED")
		m.expectNone(t, within)
	})
}
