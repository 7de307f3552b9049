package chaos

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// member is one program of the fleet, started again whenever it was killed.
type member struct {
	name string
	args []string
	dir  string
	log  io.Writer

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
	kills int
	// thaw is when the program is to go on that was frozen; zero if it was not.
	thaw    time.Time
	freezes int
}

func (m *member) start() error {
	cmd := exec.Command(m.args[0], m.args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.dir, m.log, m.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", m.name, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed, mostly
		close(ended)
	}()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cmd, m.ended = cmd, ended
	return nil
}

// kill ends it without a chance to do anything, and waits until it is gone.
func (m *member) kill() {
	m.mu.Lock()
	cmd, ended := m.cmd, m.ended
	m.mu.Unlock()
	_ = cmd.Process.Kill()
	<-ended
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
		m.mu.Lock()
		m.kills++
		m.mu.Unlock()
	}
}

// freeze stops a worker for a while, which may be shorter or longer than its lease.
func (m *member) freeze(d time.Duration) {
	_ = m.cmd.Process.Signal(syscall.SIGSTOP) // one that is dead is started again soon
	m.thaw = time.Now().Add(d)
	m.freezes++
}

// resume lets the program go on if it is time to.
func (m *member) resume(now time.Time) {
	if !m.thaw.IsZero() && now.After(m.thaw) {
		_ = m.cmd.Process.Signal(syscall.SIGCONT)
		m.thaw = time.Time{}
	}
}

// alive reports whether it runs; a program that ended by itself is a failure.
func (m *member) alive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}

// fleet is all programs of one run.
type fleet struct {
	members []*member
	logs    *os.File
}

func newFleet(t *testing.T, dir, bin string) *fleet {
	t.Helper()
	logs, err := os.Create(filepath.Join(dir, "fleet.log"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{logs: logs}
	t.Cleanup(func() {
		for _, m := range f.members {
			m.kill()
		}
		_ = logs.Close()
	})
	for _, name := range []string{"server-1", "server-2"} {
		f.add(t, name, dir, filepath.Join(bin, "tdf-server"), name, "../chaos.cfg")
	}
	for _, name := range []string{"worker-1", "worker-2", "worker-3", "worker-4"} {
		f.add(t, name, dir, filepath.Join(bin, "tdf-worker"), name, "../chaos.cfg")
	}
	f.add(t, "manager", dir, filepath.Join(bin, "handler"), "../chaos.cfg", "../handled")
	return f
}

func (f *fleet) add(t *testing.T, name, dir string, args ...string) {
	t.Helper()
	m := &member{name: name, args: args, dir: filepath.Join(dir, name), log: f.logs}
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	f.members = append(f.members, m)
}

// checkFaults fails if a program was spared: then the run has shown nothing of it.
func (f *fleet) checkFaults(t *testing.T, d time.Duration) {
	t.Helper()
	total := 0
	for _, m := range f.members {
		if total += m.kills; m.kills == 0 {
			t.Errorf("%s was never killed", m.name)
		}
		if m.isWorker() && m.freezes == 0 {
			t.Errorf("%s was never frozen", m.name)
		}
	}
	if least := int(d / (400 * time.Millisecond)); total < least {
		t.Errorf("%d kills in %v, want at least %d", total, d, least)
	}
}

func (m *member) isWorker() bool { return strings.HasPrefix(m.name, "worker") }

// longestFreeze is two and a half leases.
const longestFreeze = 5 * time.Second

// torment kills and restarts members, and freezes workers, at random until the
// time is over.
func (f *fleet) torment(t *testing.T, rnd *rand.Rand, d time.Duration) (kills int) {
	t.Helper()
	end := time.After(d)
	defer f.resume(time.Now().Add(d + longestFreeze))
	for {
		pause := time.NewTimer(time.Duration(20+rnd.IntN(200)) * time.Millisecond)
		select {
		case <-end:
			pause.Stop()
			return kills
		case <-t.Context().Done():
			pause.Stop()
			return kills
		case now := <-pause.C:
			f.resume(now)
		}
		m := f.members[rnd.IntN(len(f.members))]
		if m.isWorker() && rnd.IntN(3) == 0 {
			m.freeze(time.Duration(rnd.Int64N(int64(longestFreeze))))
			continue
		}
		f.replace(t, m)
		kills++
	}
}

// resume lets all members go on whose time has come.
func (f *fleet) resume(now time.Time) {
	for _, m := range f.members {
		m.resume(now)
	}
}

// replace kills a member and starts it again.
func (f *fleet) replace(t *testing.T, m *member) {
	t.Helper()
	if !m.alive() {
		t.Errorf("%s has ended by itself", m.name)
	}
	m.kill()
	m.thaw = time.Time{}
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
}
