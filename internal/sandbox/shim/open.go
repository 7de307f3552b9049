package shim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/sandbox/process"
)

// startPatience is how long a shim may take until it is ready.
const startPatience = 10 * time.Second

// Start starts the shim of one slot. The numbers of slots that are open at the
// same time differ.
func (c *Container) Start(slot int) (*Slot, error) {
	s := &Slot{container: c, token: fmt.Sprintf("%s.%d", c.token, slot)}
	if c.way.group || c.options.limited() {
		var err error
		if s.group, err = c.tree.Slot(slot); err != nil {
			return nil, err
		}
	}
	if err := s.launch(); err != nil {
		if s.group != nil {
			err = errors.Join(err, s.group.Remove())
		}
		return nil, err
	}
	return s, nil
}

// launch starts the shim and waits until it is ready.
func (s *Slot) launch() error {
	near, far, err := newLink()
	if err != nil {
		return fmt.Errorf("shim: socket: %w", err)
	}
	s.link = near
	s.child, err = startChild(s.token, far, s.container.way.attributes())
	_ = far.Close()
	if err != nil {
		near.close()
		return fmt.Errorf("clone: %w", err)
	}
	if err := s.introduce(); err != nil {
		near.close()
		s.child.kill()
		s.child.wait(killPatience)
		s.child.forget()
		return err
	}
	return nil
}

// introduce sends the setup and takes the answer.
func (s *Slot) introduce() error {
	text, err := json.Marshal(s.setup())
	if err != nil {
		return fmt.Errorf("shim: describe the setup: %w", err)
	}
	var files []int
	if s.group != nil && s.group.FD() >= 0 {
		files = append(files, s.group.FD())
	}
	if err := s.link.send(append([]byte{byte(kindSetup)}, text...), files...); err != nil {
		return fmt.Errorf("shim: send the setup: %w%s", err, s.child.lastWords())
	}
	s.link.await(startPatience)
	m, err := s.link.receive()
	if err != nil {
		return fmt.Errorf("shim: not ready: %w%s", err, s.child.lastWords())
	}
	var ready readiness
	if err := json.Unmarshal(m.data, &ready); err != nil || m.kind != kindReady {
		return fmt.Errorf("shim: not ready: %w", errors.Join(errGarbled, err))
	}
	s.hostProc, s.noView = ready.Proc, ready.View
	return ready.error()
}

// error tells an option that cannot be met from another reason.
func (r *readiness) error() error {
	switch f := r.Fault; {
	case f == nil:
		return nil
	case f.Option == "":
		return f
	default:
		key, value, _ := strings.Cut(f.Option, ":")
		return &OptionError{Key: key, Value: value, Err: f.Errno, Remedy: "give the worker the right to it, or leave it out"}
	}
}

func (s *Slot) setup() setup {
	c := s.container
	out := setup{
		Layer: c.way.layer, Mounts: c.way.mounts, Wrapper: c.wrapper, Plan: plan{Rlimits: c.rlimits, RunAs: c.who},
		HeadStart: cmp.Or(c.options.headStart, headStart), Try: c.tryDir,
	}
	if s.group != nil {
		out.Cgroup = s.group.FD() >= 0
		out.Plan.Join = s.group.JoinPaths()
	}
	return out
}

// attributes are how the shim is forked.
func (w way) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Setsid:    true, // what a terminal sends is not for it
		Pdeathsig: deathSignal(w.layer),
	}
	if w.layer == PIDNamespace {
		attr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	}
	if w.mounts {
		attr.Cloneflags |= unix.CLONE_NEWNS
	}
	if w.user {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		// To mount, and to do with its own files what the kernel does for an overlay.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN}
	}
	return attr
}

// request checks a program and makes it ready to send.
func (s *Slot) request(p *Program) (*order, error) {
	command := &order{view: p.View, nice: p.Nice}
	command.Command = process.Command{Dir: p.Dir, File: p.File, Args: p.Args, Env: s.container.who.environment(p.Env)}
	if p.Stdin != nil {
		command.stdin = int(p.Stdin.Fd())
	}
	if len(p.Variables) > 0 {
		command.Path = process.SearchPath(command.Env)
		command.Env = process.Environment([]string{"*"}, command.Env, p.Variables)
	}
	if err := command.Check(); err != nil {
		return nil, err
	}
	for _, path := range []*string{&command.Dir, &command.view.Lower, &command.view.Work, &command.view.Store} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return nil, process.NewStartError(p.Dir, p.File, process.ReasonDirectory, err)
		}
		*path = abs
	}
	command.Env = append(slices.Clip(command.Env), tokenVariable+s.token)
	return command, nil
}

// child is a shim as a child process of this one.
type child struct {
	pid int
	// words is what the shim writes to stderr: the trace of a crash.
	words *os.File
	dead  chan struct{}

	mu     sync.Mutex
	reaped bool // the number may be another's
	status syscall.WaitStatus
}

// startChild starts a shim on a thread that stays until it ends: the parent-death
// signal is sent when the thread ends that started it.
func startChild(token string, socket *os.File, attr *syscall.SysProcAttr) (*child, error) {
	words, err := memoryFile("tdf-shim-stderr")
	if err != nil {
		return nil, err
	}
	c := &child{words: words, dead: make(chan struct{})}
	started := make(chan error, 1)
	go c.live(token, socket, attr, started)
	if err := <-started; err != nil {
		c.forget()
		return nil, err
	}
	return c, nil
}

func (c *child) live(token string, socket *os.File, attr *syscall.SysProcAttr, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.fork(token, socket, attr)
	started <- err
	if err != nil {
		return
	}
	defer close(c.dead)
	for {
		if err := unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaped = true
	_, _ = syscall.Wait4(c.pid, &c.status, 0, nil)
}

func (c *child) fork(token string, socket *os.File, attr *syscall.SysProcAttr) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	start := func() (err error) {
		c.pid, err = syscall.ForkExec(self, []string{shimName, token}, &syscall.ProcAttr{
			Dir: "/",
			// The shim shows no environment: as PID 1 it is what programs see.
			Env:   []string{},
			Files: []uintptr{null.Fd(), null.Fd(), c.words.Fd(), socket.Fd()},
			Sys:   attr,
		})
		return err //nolint:wrapcheck // bare, as remedy wants it
	}
	if len(attr.UidMappings) > 0 {
		return revealed(func() error { return lazily(start) })
	}
	return lazily(start)
}

// kill sends SIGKILL while the number is certainly the shim's.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		_ = unix.Kill(c.pid, unix.SIGKILL)
	}
}

// wait waits for its end; false means that patience ended before.
func (c *child) wait(patience time.Duration) bool {
	select {
	case <-c.dead:
		return true
	default:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.dead:
		return true
	case <-timer.C:
		return false
	}
}

// lastWords tells how a shim ended, and what it wrote, for an error.
func (c *child) lastWords() string {
	if !c.wait(answerPatience / 10) {
		return ""
	}
	text := fmt.Sprintf(" (exit status %d)", c.status.ExitStatus())
	if c.status.Signaled() {
		text = fmt.Sprintf(" (%v)", c.status.Signal())
	}
	written := make([]byte, 1024)
	if n, _ := c.words.ReadAt(written, 0); n > 0 {
		text += ": " + strings.TrimSpace(string(written[:n]))
	}
	return text
}

// forget closes what is kept of it.
func (c *child) forget() { _ = c.words.Close() }

// The Go runtime has a thread that looks around every 20 µs while others wait in
// the kernel, which is what a shim does: it cost more than all else a shim does in
// a round. Its timers may be late by the slack of their thread. A process inherits
// that of the thread that forks it, so it is the worker that sets it, and the
// main thread, from which programs are started, sets it back.
const (
	lazySlack   = 10 * time.Millisecond
	normalSlack = 50 * time.Microsecond // the kernel's
)

func setSlack(d time.Duration) {
	// It fails only for a kernel without slack.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0)
}

// lazily runs f, which forks a shim, on this thread.
func lazily(f func() error) error {
	mine, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return f()
	}
	setSlack(lazySlack)
	defer setSlack(time.Duration(mine))
	return f()
}

// Conceal makes this process not dumpable: programs of the same user can neither
// read its environment and memory under /proc nor trace it, and it leaves no
// core file.
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shim: make the process not dumpable: %w", err)
	}
	return nil
}

// revealing guards an attribute of the whole process.
var revealing sync.Mutex

// revealed runs f with this process dumpable: the files under /proc through
// which a user namespace gets its users belong to root otherwise.
func revealed(f func() error) error {
	revealing.Lock()
	defer revealing.Unlock()
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || dumpable == 1 {
		return f()
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("shim: make the process dumpable for a moment: %w", err)
	}
	defer func() { _ = Conceal() }()
	return f()
}
