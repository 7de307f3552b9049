package shim

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

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
