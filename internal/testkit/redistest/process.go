package redistest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a running redis-server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was waited for
}

// startProcess runs redis-server in dir. It does not wait until it answers.
func startProcess(dir, addr, socket string, set *settings) (*process, error) {
	binary, err := exec.LookPath(cmp.Or(set.program, "redis-server"))
	if err != nil {
		return nil, ErrNotInstalled
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address of redis-server: %w", err)
	}
	command, err := set.command(binary, dir, port, socket)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(context.Background(), command[0], command[1:]...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), set.environ...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // also when the test binary is killed
	return p, p.start()
}

// start runs the command on a thread that lives as long as the command does:
// the parent-death signal is sent when the starting thread ends, not when the
// starting process does.
func (p *process) start() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("running redis-server: %w", err)
	}
	return nil
}

func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to redis-server: %w", sig, err)
	}
	return nil
}

// end sends sig, also to a paused process, and SIGKILL if that is not enough.
func (p *process) end(sig syscall.Signal) error {
	if err := errors.Join(p.signal(sig), p.signal(syscall.SIGCONT)); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopLimit):
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return fmt.Errorf("redis-server ignored %v for %v and was killed", sig, stopLimit)
}

// logTail returns the last lines of the server's log.
func logTail(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "redis.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}
