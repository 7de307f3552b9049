package shim

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/sandbox/process"
)

// start runs a round's program, or reports why it cannot.
func (s *shim) start(p *packet) error {
	if s.round != nil {
		return errGarbled
	}
	ask, err := p.order()
	if err != nil {
		return s.refuse(err)
	}
	if s.leaseOver() {
		return s.end(&ending{Result: Result{ExitCode: -1, Cause: LeaseOver}}, nil)
	}
	if err := s.arrange(ask.Dir, ask.view); err != nil {
		return s.refuse(fmt.Errorf("%w: %w", ErrView, err))
	}
	command := &ask.Command
	command.Wrapper = s.setup.Wrapper
	if who := s.setup.Plan.RunAs; who != nil {
		command.As = func(diagnosis func()) { s.asUser(who, diagnosis) }
	}
	r := &round{pidfd: -1}
	if err := r.pipes.open(s.setup.HeadStart, ask.stdin); err != nil {
		return s.refuse(&process.StartError{Reason: process.ReasonResources, Err: err})
	}
	r.pid, err = command.Start(func(file string, argv []string) (int, error) {
		return s.execute(&ask, file, argv, r.pipes.program(), &r.pidfd)
	})
	if err != nil {
		r.pipes.close()
		return s.refuse(err)
	}
	s.round = r
	return nil
}

// refuse tells why a program was not started.
func (s *shim) refuse(err error) error {
	return s.end(&ending{Result: Result{ExitCode: -1}, Fault: newFault(err)}, nil)
}

// end tells how a round ended.
func (s *shim) end(e *ending, output []byte) error {
	message, err := e.encode(output)
	if err != nil {
		return err
	}
	return s.socket.send(message)
}

// execute forks and executes a file with argv, by way of the launcher if there are limits
// that only it can set.
func (s *shim) execute(o *order, file string, argv []string, files []uintptr, pidfd *int) (int, error) {
	attr := &syscall.ProcAttr{Dir: o.Dir, Env: o.Env, Files: files, Sys: s.attributes(pidfd)}
	plan := s.setup.Plan
	if plan.Nice = o.nice; plan.needed() {
		return plan.execute(file, argv, attr)
	}
	attr.Sys.Credential = s.setup.Plan.RunAs.credential()
	return syscall.ForkExec(file, argv, attr) //nolint:wrapcheck // the errno is what is diagnosed
}

func (s *shim) attributes(pidfd *int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		// A session rather than only a group: without a controlling terminal, a
		// program that asks one for a password fails instead of being stopped.
		Setsid:      true,
		Pdeathsig:   syscall.SIGKILL,
		PidFD:       pidfd,
		UseCgroupFD: s.cgroup >= 0,
		CgroupFD:    s.cgroup,
	}
	if s.setup.Mounts {
		attr.Cloneflags = unix.CLONE_NEWNS // what a round mounts goes with it
	}
	return attr
}

// asUser runs f with the rights of who, on this thread: where a start has failed, there may be no other one to be had. The
// parent-death signal is lost with a change of rights, so it is set again.
func (s *shim) asUser(who *identity, f func()) {
	mine, err := unix.Getgroups()
	if err != nil {
		return
	}
	// If one of these fails, f runs with too many rights, which only blurs a diagnosis.
	_ = setThreadGroups(who.Groups)
	_ = setThreadIDs(unix.SYS_SETRESGID, -1, who.GID, -1)
	_ = setThreadIDs(unix.SYS_SETRESUID, -1, who.UID, -1)
	f()
	_ = setThreadIDs(unix.SYS_SETRESUID, -1, unix.Getuid(), -1)
	_ = setThreadIDs(unix.SYS_SETRESGID, -1, unix.Getgid(), -1)
	_ = setThreadGroups(mine)
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(deathSignal(s.setup.Layer)), 0, 0, 0)
}

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
	pipes  pipes
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
	if r.pipes.all != nil {
		wait = min(wait, max(0, time.Until(r.pipes.due)))
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
			return s.passOn()
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
	written, output, err := s.collect(&r.pipes)
	if err != nil {
		return err
	}
	end := ending{Written: written, Unkillable: !clean, Result: Result{
		Started: true, ExitCode: -1, Cause: r.cause, MaxMemory: r.usage.Maxrss * 1024,
		UserTime: time.Duration(r.usage.Utime.Nano()), SystemTime: time.Duration(r.usage.Stime.Nano()),
	}}
	if r.reaped {
		end.Result.ExitCode = r.status.ExitStatus()
		if r.status.Signaled() {
			end.Result.Signal = r.status.Signal()
		}
	}
	return s.end(&end, output)
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

// chases is how often in a row the children of a subreaper are killed: one that
// forks and ends all the time is caught by speed only.
const chases = 100

// clear kills and reaps until nothing is left; false means that patience ended before.
func (s *shim) clear(patience time.Duration) bool {
	if s.reap() {
		return true // as nearly always
	}
	s.freeze(true)
	defer s.freeze(false)
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		s.kill()
		if s.reap() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		// The end of a child is the end of the pause.
		_, _ = unix.Poll(nil, int(pause/time.Millisecond))
	}
}

// kill sends SIGKILL to all that can be found now.
func (s *shim) kill() {
	if s.setup.Layer == PIDNamespace {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	if s.round != nil && !s.round.reaped {
		_ = unix.Kill(-s.round.pid, unix.SIGKILL)
	}
	for range chases {
		n := killChildren()
		if n < 0 {
			break
		}
		if n == 0 || s.reap() {
			return
		}
	}
	killDescendants(unix.Getpid())
}

// killChildren kills the children of this process, whose numbers are certainly
// theirs as long as nobody reaps them. Those of the killed are its children
// next. It returns how many there were, negative if that cannot be known.
func killChildren() int {
	self := strconv.Itoa(unix.Getpid())
	list, err := os.ReadFile("/proc/" + self + "/task/" + self + "/children")
	if err != nil {
		return -1 // a kernel without this file: the whole table is read instead
	}
	words := strings.Fields(string(list))
	for _, word := range words {
		if pid, err := strconv.Atoi(word); err == nil {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	return len(words)
}

// freeze stops what is in the cgroup, so that nothing forks while it is killed,
// or lets it go on. It is not cgroup.kill, which would also kill whatever is
// started in that cgroup afterwards by CLONE_INTO_CGROUP (seen with Linux 6.18).
func (s *shim) freeze(on bool) {
	if s.cgroup < 0 || s.setup.Layer == PIDNamespace {
		return
	}
	state := byte('0')
	if on {
		state = '1'
	}
	fd, err := unix.Openat(s.cgroup, "cgroup.freeze", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // an old kernel: repetition has to do
	}
	_, _ = unix.Write(fd, []byte{state})
	_ = unix.Close(fd)
}
