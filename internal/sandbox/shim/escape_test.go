package shim

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// within is how soon after the end of a round, or of its owner, nothing may be left.
const within = 2 * time.Second

// family leaves behind what it can: a child, a grandchild in a session of its
// own, a double fork, each deaf to TERM and holding stdout and stderr. It says
// that it is ready, then does what body says.
const family = `trap '' TERM HUP INT
sleep 300 &
setsid sh -c 'sleep 300 & exec sleep 300' &
(setsid sh -c '(sleep 300 &) ; sh -c "cd / && sleep 300; true" & echo > double; exec sleep 300' &)
until [ -e double ]; do sleep 0.01; done
echo > ready
`

// marked is a program whose processes can be told from all others of the host.
type marked struct {
	dir, mark string
}

func newMarked(t testing.TB, body string) *marked {
	t.Helper()
	m := &marked{dir: script(t, body), mark: "SHIM_TEST_MARK=" + rand.Text()}
	t.Cleanup(func() {
		for _, pid := range m.alive() { // a safety net for a failing test
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	return m
}

func (m *marked) program() Program {
	return Program{Dir: m.dir, Env: []string{path, m.mark, "DIR=" + m.dir}}
}

func (m *marked) awaitReady(t testing.TB) {
	t.Helper()
	wait.Eventually(t, 15*time.Second, func() bool {
		_, err := os.Stat(filepath.Join(m.dir, "ready"))
		return err == nil
	}, "the program is ready")
}

// alive lists its processes, seen from the host.
func (m *marked) alive() []int {
	var pids []int
	for _, pid := range processes() {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+m.mark)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// expectNone fails unless all is gone at once (the round has ended) or soon.
func (m *marked) expectNone(t testing.TB, patience time.Duration) {
	t.Helper()
	if patience == 0 {
		if left := m.alive(); len(left) > 0 {
			t.Errorf("processes %v survived their round", left)
		}
		return
	}
	wait.Eventually(t, patience, func() bool { return len(m.alive()) == 0 }, "no survivor")
}

func TestNothingSurvivesItsRound(t *testing.T) {
	t.Parallel()
	const hang = `exec sleep 300`
	cases := map[string]struct {
		body  string
		end   func(s *Slot, b *background)
		grace time.Duration
		cause Cause
		err   error
	}{
		"exit":           {body: `exit 3`, end: func(*Slot, *background) {}},
		"signal":         {body: `kill -9 $$`, end: func(*Slot, *background) {}},
		"cancel":         {body: hang, end: func(_ *Slot, b *background) { b.cancel() }, cause: Cancelled},
		"grace":          {body: hang, end: func(_ *Slot, b *background) { b.cancel() }, grace: 100 * time.Millisecond, cause: Cancelled},
		"kill":           {body: hang, end: func(s *Slot, _ *background) { s.Kill() }, grace: time.Hour, cause: Killed},
		"lease":          {body: hang, end: func(s *Slot, _ *background) { _ = s.Extend(Now().Add(100 * time.Millisecond)) }, cause: LeaseOver},
		"shim -9":        {body: hang, end: func(s *Slot, _ *background) { _ = unix.Kill(s.PID(), unix.SIGKILL) }, err: ErrShimLost},
		"closed":         {body: hang, end: func(s *Slot, _ *background) { _ = s.Close() }, err: ErrShimLost},
		"frozen, kill":   {body: hang, end: func(s *Slot, _ *background) { freeze(s); s.Kill() }, err: ErrShimLost},
		"frozen, cancel": {body: hang, end: func(s *Slot, b *background) { freeze(s); b.cancel() }, err: ErrShimLost},
		"frozen, close":  {body: hang, end: func(s *Slot, _ *background) { freeze(s); _ = s.Close() }, err: ErrShimLost},
		"shim TERM":      {body: hang, end: func(s *Slot, _ *background) { _ = unix.Kill(s.PID(), unix.SIGTERM); s.Kill() }, cause: Killed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayer(t, func(t *testing.T, s *Slot) {
				m := newMarked(t, family+c.body)
				p := m.program()
				p.Grace = c.grace
				b := begin(t, s, p)
				m.awaitReady(t)
				begun := time.Now()
				c.end(s, b)
				b.wait(t)
				wait.Within(t, "the end of the round", begun, time.Now(), within)
				if b.result.Cause != c.cause || !errors.Is(b.err, c.err) || c.err == nil && b.err != nil {
					t.Errorf("got %+v, %v; want %q, %v", b.result, b.err, c.cause, c.err)
				}
				m.expectNone(t, 0)
			})
		})
	}
}

func freeze(s *Slot) { _ = unix.Kill(s.PID(), unix.SIGSTOP) }

// A worker that is killed or frozen cannot kill anything.
func TestNothingSurvivesItsWorker(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		signal unix.Signal
		lease  time.Duration
	}{
		"killed": {unix.SIGKILL, 0},
		"frozen": {unix.SIGHUP, time.Second}, // see freezeOnHangup
	}
	for name, c := range cases {
		for _, layer := range layers {
			t.Run(name+"/"+string(layer), func(t *testing.T) {
				t.Parallel()
				m := newMarked(t, family+`exec sleep 300`)
				role := string(layer)
				if c.lease > 0 {
					role += ", " + c.lease.String()
				}
				worker := startWorker(t, m, role)
				m.awaitReady(t)
				if err := worker.Process.Signal(c.signal); err != nil {
					t.Fatal(err)
				}
				m.expectNone(t, c.lease+within)
				_ = worker.Process.Kill()
				_ = worker.Wait()
				sweepAfter(t, m, layer)
			})
		}
	}
}

// sweepAfter removes what a killed worker could not, its cgroups, as the next
// incarnation does. There is nobody left to kill: the shims ended with their worker.
func sweepAfter(t *testing.T, m *marked, layer Layer) {
	t.Helper()
	wait.Eventually(t, within, func() bool { return m.grouped() == "" }, "its cgroups are empty")
	if n, err := container(t, Options{Want: layer, Name: m.mark}).Sweep(); n != 0 || err != nil {
		t.Errorf("Sweep killed %d: %v", n, err)
	}
}

// grouped lists the members of the cgroups of the worker that is named after the
// mark. A dying process is one for longer than alive can tell by its environment.
func (m *marked) grouped() string {
	var members strings.Builder
	_, word, _ := strings.Cut(m.mark, "=")
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "cgroup.procs" && strings.Contains(path, word) {
			pids, _ := os.ReadFile(path) // gone, and so are its members
			members.Write(pids)
		}
		return nil // others come and go meanwhile
	})
	return members.String()
}

// startWorker starts the test binary as a worker, which is killed at the end.
func startWorker(t *testing.T, m *marked, role string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "DIR="+m.dir, "MARKED="+m.mark, "NAME="+m.mark)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}
