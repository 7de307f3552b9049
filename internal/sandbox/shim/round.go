package shim

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// round is the program under way in a shim.
type round struct {
	// pid is the leader, run.sh, and pidfd stands for it (-1 where there are none).
	pid, pidfd int
	// reaped says that the leader's status is taken: its number may be another's.
	reaped bool
	status syscall.WaitStatus
	usage  syscall.Rusage
	cause  Cause
	// killAt is when the grace ends; zero while nobody asked to stop.
	killAt time.Time
}

// timeout is how long poll may wait, in milliseconds.
func (r *round) timeout() int {
	wait := tick
	if r.pidfd < 0 {
		wait = 10 * time.Millisecond
	}
	if !r.killAt.IsZero() {
		wait = min(wait, max(0, time.Until(r.killAt)))
	}
	return int((wait + time.Millisecond - 1) / time.Millisecond)
}

func (r *round) because(cause Cause) {
	if r.cause == Ended {
		r.cause = cause
	}
}

// stop ends the round early: with grace at once, or after SIGTERM.
func (s *shim) stop(asked kind, grace time.Duration) {
	r := s.round
	if asked == kindKill {
		r.because(Killed)
		grace = 0
	} else {
		r.because(Cancelled)
	}
	at := time.Now().Add(grace)
	if grace > 0 && r.killAt.IsZero() {
		_ = unix.Kill(-r.pid, unix.SIGTERM)
	}
	if r.killAt.IsZero() || at.Before(r.killAt) {
		r.killAt = at
	}
}

// advance looks what the time and the end of children mean for the round. The
// error is that of an answer nobody takes.
func (s *shim) advance(leader bool) error {
	r := s.round
	switch {
	case leader || r.ended():
	case s.leaseOver():
		r.because(LeaseOver)
	case !r.killAt.IsZero() && !time.Now().Before(r.killAt):
	default:
		s.reap()
		if !r.reaped {
			return nil
		}
	}
	return s.finish()
}

// ended asks for the leader without reaping it.
func (r *round) ended() bool {
	if r.reaped || r.pidfd >= 0 {
		return r.reaped // the pidfd tells
	}
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, r.pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// finish kills what is left, reaps all of it and reports the end.
func (s *shim) finish() error {
	r := s.round
	if !r.reaped {
		// The leader is ours, ended or not, so its group is: in the usual case
		// there is nobody else, and this was all.
		_ = unix.Kill(-r.pid, unix.SIGKILL)
	}
	clean := s.clear(killPatience)
	s.round = nil
	if r.pidfd >= 0 {
		_ = unix.Close(r.pidfd)
	}
	return s.answer(kindEnd, ending{
		Started: true, Ended: r.reaped, Status: r.status, Cause: r.cause, Unkillable: !clean,
		User: r.usage.Utime.Nano(), System: r.usage.Stime.Nano(), Memory: r.usage.Maxrss * 1024,
	})
}

// reap takes the status of every child that has ended, orphans among them, and
// reports whether no child is left, so no descendant either.
func (s *shim) reap() (none bool) {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|unix.WALL, &usage)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return true
		case pid == 0:
			return false
		case s.round != nil && pid == s.round.pid:
			s.round.reaped, s.round.status, s.round.usage = true, status, usage
		}
	}
}
