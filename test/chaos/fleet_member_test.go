package chaos

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// role is what kind of program a member is.
type role string

const (
	server  role = "server"
	worker  role = "worker"
	manager role = "manager"
	foreign role = "worker over HTTP"
)

// member is one program of the fleet. Only the test's goroutine uses it: what
// that one starts dies with its thread.
type member struct {
	name string
	role role
	args []string
	dir  string
	log  io.Writer

	cmd   *exec.Cmd
	ended chan struct{}
	// back is when the program is to go on that is frozen, or dead for a while as
	// if its host were gone; zero if it is neither. Then restored is called.
	back     time.Time
	restored func()
	// hits counts the faults, frozen tells when it was stopped and let go.
	hits   int
	frozen []span
	// cut is until when it may end by itself: its network or its disk is away.
	cut time.Time
}

// span is from a moment to another one.
type span struct{ from, to time.Time }

func (m *member) start() error {
	cmd := exec.Command(m.args[0], m.args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.dir, m.log, m.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", m.name, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed, mostly
		close(ended)
	}()
	m.cmd, m.ended = cmd, ended
	return nil
}

// kill ends it without a chance to do anything, and waits until it is gone.
func (m *member) kill() {
	_ = m.cmd.Process.Kill()
	<-m.ended
	m.killAll()
}

// lose kills it, to come back after a while only; then restored is called.
func (m *member) lose(d time.Duration, restored func()) {
	m.kill()
	m.back, m.restored = time.Now().Add(d), restored
}

// freeze stops it for a while; then restored is called.
func (m *member) freeze(d time.Duration, restored func()) error {
	now := time.Now()
	if err := m.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze %s: %w", m.name, err)
	}
	m.back, m.restored = now.Add(d), restored
	m.frozen = append(m.frozen, span{now, m.back})
	return nil
}

// resume lets the program go on, or starts it again, if it is time to.
func (m *member) resume(now time.Time) error {
	if m.back.IsZero() || now.Before(m.back) {
		return nil
	}
	m.back = time.Time{}
	if !m.alive() {
		if err := m.start(); err != nil {
			return err
		}
	} else if err := m.thaw(); err != nil {
		return err
	}
	if m.restored != nil {
		m.restored()
		m.restored = nil
	}
	return nil
}

// thaw ends a freeze.
func (m *member) thaw() error {
	if err := m.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("resume %s: %w", m.name, err)
	}
	m.frozen[len(m.frozen)-1].to = time.Now()
	return nil
}

// away reports whether it is frozen or dead for a while.
func (m *member) away() bool { return !m.back.IsZero() }

// alive reports whether it runs.
func (m *member) alive() bool {
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}
