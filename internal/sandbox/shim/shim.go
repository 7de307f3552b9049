package shim

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/sandbox/process"
)

const (
	// self is this program, also when its file was replaced or removed.
	self         = "/proc/self/exe"
	shimName     = "tdf-shim"
	launcherName = "tdf-launch"
	// socketFD is where a shim finds its socket.
	socketFD = 3
	// nullFD is /dev/null in a shim.
	nullFD = 0
	// killPatience is how long processes may outlive SIGKILL before they are given up.
	killPatience = 5 * time.Second
	// tick is how often orphans are looked for if the signal that tells of them was missed.
	tick = time.Second
)

// The program turns into a shim or launcher before its main function, in
// whatever program this package is linked into. The main goroutine stays on the
// main thread meanwhile, as parent-death signals of what it starts demand.
func init() { //nolint:gochecknoinits // see above
	switch os.Args[0] {
	case shimName:
		shimMain()
	case launcherName:
		launcherMain()
	}
}

// exit ends a shim or launcher at once: os.Exit waits a second under the race detector.
func exit(code int) { syscall.Exit(code) }

// shimMain is the whole life of a shim.
func shimMain() {
	runtime.GOMAXPROCS(1)
	setSlack(normalSlack)
	if process.CloseInherited(socketFD+1) != nil { // what the worker has from its own parent
		_ = process.SealDescriptors() // without /proc: programs at least get none of it
	}
	unix.CloseOnExec(socketFD)
	// Signals are for programs. They are caught rather than ignored, because
	// programs would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, //nolint:forbidigo // a process of its own
		syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGPIPE)
	s := &shim{socket: newSocket(socketFD), cgroup: -1}
	s.room = s.socket.room()
	if err := s.begin(); err != nil {
		exit(1)
	}
	s.serve()
	// The worker is gone.
	s.clear(killPatience)
	exit(0)
}

// shim is the state of a shim process, which has one thread of control.
type shim struct {
	socket *socket
	setup  setup
	room   int // how much output fits into a packet
	timer  int // fires at the lease deadline
	cgroup int // directory of the slot's cgroup, or -1
	lease  Instant
	round  *round
	shown  string      // where the overlay of the last round is mounted, "" for none
	store  string      // what is read-only, "" for none
	asked  chan func() // of the thread that may mount, if that is another one
}

// begin takes the setup and answers it.
func (s *shim) begin() error {
	p, err := s.socket.receive()
	if err != nil {
		return err
	}
	if p.kind != kindSetup {
		return errGarbled
	}
	if err := json.Unmarshal(p.data, &s.setup); err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	if s.setup.Cgroup && len(p.files) == 1 {
		s.cgroup = p.files[0]
	}
	ready := readiness{}
	if err := s.prepare(&ready); err != nil {
		ready.Fault = newFault(err)
	}
	return s.answer(kindReady, ready)
}

func (s *shim) answer(k kind, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return s.socket.send(append([]byte{byte(k)}, text...))
}

// serve handles messages, the deadline and the end of programs until the worker
// is gone.
func (s *shim) serve() {
	for {
		sock, timer, leader := s.poll()
		if timer {
			s.drainTimer()
		}
		if sock {
			if s.handle() != nil {
				return
			}
			continue // poll again: what else there is waits for nothing
		}
		if s.round == nil {
			continue
		}
		if s.advance(leader) != nil {
			return
		}
	}
}

// poll waits for what comes next. A signal, in particular that of a child that
// ended, ends the wait too.
func (s *shim) poll() (sock, timer, leader bool) {
	fds := [3]unix.PollFd{
		{Fd: int32(s.socket.fd), Events: unix.POLLIN},
		{Fd: int32(s.timer), Events: unix.POLLIN},
		{Fd: -1, Events: unix.POLLIN},
	}
	timeout := -1
	if s.round != nil {
		fds[2].Fd = int32(s.round.pidfd)
		timeout = s.round.timeout()
	}
	if n, err := unix.Poll(fds[:], timeout); err != nil || n == 0 {
		return false, false, false
	}
	return fds[0].Revents != 0, fds[1].Revents != 0, fds[2].Revents != 0
}

// handle takes one message. An error means that the worker is gone, or makes no
// sense, which is the same.
func (s *shim) handle() error {
	p, err := s.socket.receive()
	if err != nil {
		return err
	}
	defer p.close()
	switch p.kind { //nolint:exhaustive // the others go the other way, or came before
	case kindRun:
		return s.start(&p)
	case kindLease:
		return s.extend(Instant(decodeTime(p.data)))
	case kindStop, kindKill:
		if err := s.socket.send([]byte{byte(kindAnswer), byte(p.kind)}); err != nil {
			return err
		}
		if s.round != nil {
			s.stop(p.kind, decodeTime(p.data))
		}
		return nil
	}
	return errGarbled
}

// extend moves the deadline; 0 removes it.
func (s *shim) extend(at Instant) error {
	s.lease = at
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}
	return os.NewSyscallError("timerfd_settime", unix.TimerfdSettime(s.timer, unix.TFD_TIMER_ABSTIME, &spec, nil))
}

func (s *shim) leaseOver() bool { return s.lease != 0 && Now() >= s.lease }

func (s *shim) drainTimer() {
	var expirations [8]byte
	// The clock is asked whether the deadline has passed, not the timer.
	_, _ = unix.Read(s.timer, expirations[:])
}

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
		if err := s.dropCapabilities(); err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
	}
	if s.setup.Try != "" {
		if err := s.tryView(s.setup.Try); err != nil {
			ready.View = err.Error()
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
	if !s.setup.mayMount() {
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
func (s *shim) dropCapabilities() error {
	if unix.Geteuid() == 0 {
		return nil
	}
	s.mounter()
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
	if !s.setup.Plan.needed() && s.setup.Plan.RunAs == nil {
		return nil
	}
	attr := &syscall.ProcAttr{Dir: "/", Files: []uintptr{nullFD, nullFD, nullFD}, Sys: s.attributes(nil)}
	pid, err := s.setup.Plan.execute("", nil, attr)
	if err != nil {
		return fmt.Errorf("try the limits: %w", err)
	}
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return os.NewSyscallError("wait4", err)
}

// Instant is a moment on CLOCK_BOOTTIME, which goes on while the host sleeps.
type Instant time.Duration

// Now reads that clock.
func Now() Instant {
	var now unix.Timespec
	// It cannot fail: the clock is as old as Linux 2.6.39.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return Instant(now.Nano())
}

// Add returns the moment d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }
