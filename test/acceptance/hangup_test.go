package acceptance

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// connection is what a program started from another host is connected by.
type connection struct {
	attach func(cmd *exec.Cmd)
	hangUp func()
}

// byTerminal is a terminal that the program's session belongs to: its end sends SIGHUP.
func byTerminal(t *testing.T) *connection {
	t.Helper()
	p := hosttest.OpenTerminal(t)
	return &connection{
		attach: func(cmd *exec.Cmd) {
			cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Slave, p.Slave, p.Slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		},
		hangUp: func() { p.HangUp(t) },
	}
}

// byPipe is a connection without a terminal: its end is seen by the next line of the log.
func byPipe(t *testing.T) *connection {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return &connection{
		attach: func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = write, write },
		hangUp: func() { _ = read.Close() },
	}
}

// A connection that breaks ends no daemon, and costs the round under way nothing.
func TestHangUpEndsNoDaemon(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*testing.T) *connection{"terminal": byTerminal, "pipe": byPipe} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var all []*connection
			launch := func(dir, program string, args ...string) {
				c := connect(t)
				w.over(t, c, dir, program, args...)
				all = append(all, c)
			}
			launch("server", "tdf-server", "server", w.cfg)
			launch("w", "tdf-worker", w.workerArgs("w")...)
			launch("manager", "tdf-manager", "--config", w.cfg, "run")
			spec, l := w.beating(t)
			id := w.open(t, spec)[0]
			l.begun(t, 0, 1)
			// A program that is just starting ends with its terminal.
			wait.Eventually(t, patience, func() bool { return w.Raw.HLen(t.Context(), w.Key("managers")).Val() > 0 }, "the manager has not begun")
			for _, c := range all {
				c.hangUp()
			}
			// Each of them writes to its log because of this one.
			w.archived(t, w.open(t, w.script(t, "p", "true"))[0], sm.Succeeded)
			l.release(t)
			checkFields(t, w.archived(t, id, sm.Succeeded), map[string]string{"round": "0", "losses": "-", "releases": "-"})
		})
	}
}

// Somebody waits in front of the other commands, so they end with the connection.
func TestHangUpEndsACommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.open(t, w.script(t, "p", "true"))[0]
	for _, args := range [][]string{{"wait", id2text(id)}, {"logs", "-f", id2text(id)}, {"top"}, {"stats", "--watch"}} {
		c := byTerminal(t)
		d := w.over(t, c, "manager", "tdf-manager", append([]string{"--config", w.cfg}, args...)...)
		d.Killed = true
		c.hangUp()
		wait.Closed(t, patience, d.Done, "%v does not end", args)
		if s, ok := d.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGHUP {
			t.Errorf("%v ended with %v", args, d.ProcessState)
		}
	}
}

// over starts a program at the far end of a connection.
func (w *world) over(t *testing.T, c *connection, dir, name string, args ...string) *daemon {
	t.Helper()
	cmd := exec.Command(program(t, name), args...)
	cmd.Dir = w.own(t, dir)
	c.attach(cmd)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // under nohup the program would ignore it, as the tests do
	return w.start(t, cmd)
}
