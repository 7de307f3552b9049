package redistest

import (
	"fmt"
	"syscall"
	"testing"
)

// Stop ends the server with SIGTERM. Clients see their connections closed.
// A server that is down already stays down.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.control(tb, "stop", func() error { return s.down(syscall.SIGTERM) })
}

// Kill ends the server with SIGKILL: what was not on disk is lost.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.control(tb, "kill", func() error { return s.down(syscall.SIGKILL) })
}

// Restart stops the server if it runs and starts it again at the same addresses.
// Data survives only under [WithAppendOnly].
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.control(tb, "restart", func() error {
		if err := s.down(syscall.SIGTERM); err != nil {
			return err
		}
		return s.up()
	})
}

// Pause freezes the server (SIGSTOP): connections stay open, nothing is answered.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	s.control(tb, "pause", func() error { return s.signal(syscall.SIGSTOP) })
}

// Resume lets a paused server go on (SIGCONT).
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	s.control(tb, "resume", func() error { return s.signal(syscall.SIGCONT) })
}

// control runs one operation on a server that belongs to this test alone.
func (s *Server) control(tb testing.TB, verb string, do func() error) {
	tb.Helper()
	if s.shared {
		tb.Errorf("cannot %s the shared redis-server: other tests use it; take redistest.Start", verb)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := do(); err != nil {
		tb.Errorf("cannot %s redis-server: %v", verb, err)
	}
}

func (s *Server) signal(sig syscall.Signal) error {
	if s.process == nil {
		return errDown
	}
	return s.process.signal(sig)
}

// up starts the process and waits until it answers; s.mu is held or s is not
// shared yet.
func (s *Server) up() error {
	p, err := startProcess(s.dir, s.addr, s.Socket(), &s.settings)
	if err != nil {
		return err
	}
	if err := s.awaitPong(p); err != nil {
		_ = p.end(syscall.SIGKILL)
		return fmt.Errorf("%w; its log ends:\n%s", err, logTail(s.dir))
	}
	s.process = p
	return nil
}

// down ends the process, if there is one, beginning with sig.
func (s *Server) down(sig syscall.Signal) error {
	if s.process == nil {
		return nil
	}
	err := s.process.end(sig)
	s.process = nil
	return err
}
