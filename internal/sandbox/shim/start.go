package shim

import (
	"syscall"

	"github.com/tdf-go/tdf/internal/sandbox/process"
	"golang.org/x/sys/unix"
)

// start runs a round's program, or reports why it cannot.
func (s *shim) start(p *packet) error {
	if s.round != nil {
		return errGarbled
	}
	ask, files, err := p.run()
	if err != nil {
		return s.answer(kindEnd, ending{Fault: newFault(err)})
	}
	if s.leaseOver() {
		return s.answer(kindEnd, ending{Cause: LeaseOver})
	}
	command := process.Command{Dir: ask.dir, Args: ask.args, Env: ask.env, Wrapper: s.setup.Wrapper}
	if who := s.setup.RunAs; who != nil {
		command.As = func(diagnosis func()) { s.asUser(who, diagnosis) }
	}
	r := &round{pidfd: -1}
	r.pid, err = command.Start(func(argv []string) (int, error) { return s.execute(&command, argv, files, &r.pidfd) })
	if err != nil {
		return s.answer(kindEnd, ending{Fault: newFault(err)})
	}
	s.round = r
	return nil
}

// execute forks and executes argv, by way of the launcher if there are limits
// that only it can set.
func (s *shim) execute(c *process.Command, argv []string, files [3]int, pidfd *int) (int, error) {
	attr := &syscall.ProcAttr{Dir: c.Dir, Env: c.Env, Files: make([]uintptr, 0, 4), Sys: s.attributes(pidfd)}
	for _, fd := range files {
		if fd < 0 {
			fd = nullFD
		}
		attr.Files = append(attr.Files, uintptr(fd))
	}
	if s.plan != nil {
		return s.plan.execute(argv, attr)
	}
	attr.Sys.Credential = s.setup.RunAs.credential()
	return syscall.ForkExec(argv[0], argv, attr) //nolint:wrapcheck // the errno is what is diagnosed
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

// asUser runs f with the rights of who, on this thread only. The parent-death
// signal is lost with a change of rights, so it is set again.
func (s *shim) asUser(who *identity, f func()) {
	mine, err := unix.Getgroups()
	if err != nil {
		return
	}
	// What fails leaves f with more rights than who has, which only blurs a diagnosis.
	_ = setThreadGroups(who.Groups)
	setThreadIDs(unix.SYS_SETRESGID, who.GID)
	setThreadIDs(unix.SYS_SETRESUID, who.UID)
	f()
	setThreadIDs(unix.SYS_SETRESUID, unix.Getuid())
	setThreadIDs(unix.SYS_SETRESGID, unix.Getgid())
	_ = setThreadGroups(mine)
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(deathSignal(s.setup.Layer)), 0, 0, 0)
}
