package shim

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare makes the shim what its setup says.
func (s *shim) prepare(ready *readiness) error {
	timer, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("timerfd_create: %w", err)
	}
	s.timer = timer
	if s.setup.Layer != PIDNamespace {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("become a subreaper: %w", err)
		}
	}
	if err := s.separateMounts(); err != nil {
		return err
	}
	if s.setup.Layer == PIDNamespace {
		if err := mountProc(); err != nil {
			ready.Proc = err.Error()
		}
		if err := dropCapabilities(); err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
	}
	if err := Conceal(); err != nil {
		return err
	}
	return s.probe()
}

// separateMounts makes the mount namespace one of which nothing goes out. Mounts
// that others make from now on still come in, and into those of the rounds, which
// are copies of it.
func (s *shim) separateMounts() error {
	if s.setup.Layer != PIDNamespace && !s.setup.Mounts {
		return nil // it is the worker's
	}
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount --make-rslave /: %w", err)
	}
	return nil
}

// mountProc gives the namespace a /proc that shows it alone.
func mountProc() error {
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// dropCapabilities gives up what an ordinary user got in a user namespace, on the
// main thread, from which programs are started. Programs cannot reach the other
// threads, since the shim is not dumpable. Root keeps what it has.
func dropCapabilities() error {
	if unix.Geteuid() == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return os.NewSyscallError("capset", unix.Capset(&header, &none[0]))
}

// deathSignal is what a shim gets when the worker dies. As PID 1 it may die at
// once, and all with it. A subreaper has to kill its descendants first, when it
// finds its socket closed, so it is only woken in case it was stopped.
func deathSignal(layer Layer) syscall.Signal {
	if layer == PIDNamespace {
		return syscall.SIGKILL
	}
	return syscall.SIGCONT
}

// probe runs the launcher without a program, to find out whether what each round
// will ask for can be had.
func (s *shim) probe() error {
	if s.plan == nil && s.setup.RunAs == nil {
		return nil
	}
	attr := &syscall.ProcAttr{Dir: "/", Files: []uintptr{nullFD, nullFD, nullFD}, Sys: s.attributes(nil)}
	pid, err := s.setup.fullPlan().execute(nil, attr)
	if err != nil {
		return fmt.Errorf("try the limits: %w", err)
	}
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return os.NewSyscallError("wait4", err)
}
