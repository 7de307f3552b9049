package chaos

import (
	"bytes"
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
	// back is when the program is to go on that is frozen, or dead for a while as
	// if its host were gone; zero if it is neither.
	back    time.Time
	freezes int
	gone    int
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

// freeze stops a worker for a while.
func (m *member) freeze(d time.Duration) {
	_ = m.cmd.Process.Signal(syscall.SIGSTOP) // the caller has seen that it lives
	m.back = time.Now().Add(d)
	m.freezes++
}

// lose kills a worker that is to come back after a while only.
func (m *member) lose(d time.Duration) {
	m.kill()
	m.back = time.Now().Add(d)
	m.gone++
}

// resume lets the program go on, or starts it again, if it is time to.
func (m *member) resume(now time.Time) error {
	if m.back.IsZero() || now.Before(m.back) {
		return nil
	}
	m.back = time.Time{}
	if !m.alive() {
		return m.start()
	}
	if err := m.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("resume %s: %w", m.name, err)
	}
	return nil
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
	// Where a layer is not to be had, the worker takes the next weaker one.
	for i, layer := range []string{"auto", "pidns", "cgroup", "group"} {
		name := fmt.Sprintf("worker-%d", i+1)
		f.add(t, name, dir, filepath.Join(bin, "tdf-worker"), name, "../chaos.cfg", "--set", "worker.containment="+layer)
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
		if m.isWorker() && m.freezes+m.gone == 0 {
			t.Errorf("%s was never frozen or away", m.name)
		}
	}
	if least := int(d / (600 * time.Millisecond)); total < least {
		t.Errorf("%d kills in %v, want at least %d", total, d, least)
	}
	text, err := os.ReadFile(f.logs.Name())
	if err != nil {
		t.Fatal(err)
	}
	verdicts := bytes.Count(text, []byte(" is lost: silent for "))
	if t.Logf("%d verdicts over workers", verdicts); verdicts == 0 {
		t.Error("no server has found a worker dead")
	}
}

func (m *member) isWorker() bool { return strings.HasPrefix(m.name, "worker") }

// longestAbsence of a worker is three leases: it is found dead, or comes back
// before.
const longestAbsence = 6 * time.Second

// torment kills and restarts members at random until the time is over, and takes
// workers away for a while.
func (f *fleet) torment(t *testing.T, rnd *rand.Rand, d time.Duration) (kills int) {
	t.Helper()
	end := time.After(d)
	defer f.resume(t, time.Now().Add(d+longestAbsence))
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
			f.resume(t, now)
		}
		kills += f.hit(t, f.members[rnd.IntN(len(f.members))], rnd)
	}
}

// hit makes one fault and returns the number of kills. A server is spared mostly:
// it judges nobody before it has lived for a lease.
func (f *fleet) hit(t *testing.T, m *member, rnd *rand.Rand) int {
	t.Helper()
	fault, absence := rnd.IntN(5), time.Duration(rnd.Int64N(int64(longestAbsence)))
	switch {
	case !m.back.IsZero(), strings.HasPrefix(m.name, "server") && fault > 0:
		return 0
	case m.isWorker() && fault == 0:
		m.freeze(absence)
		return 0
	}
	if !m.alive() {
		t.Errorf("%s has ended by itself", m.name)
	}
	if m.isWorker() && fault == 1 {
		m.lose(absence)
		return 1
	}
	m.kill()
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	return 1
}

// resume lets all members go on whose time has come.
func (f *fleet) resume(t *testing.T, now time.Time) {
	t.Helper()
	for _, m := range f.members {
		if err := m.resume(now); err != nil {
			t.Error(err)
		}
	}
}
