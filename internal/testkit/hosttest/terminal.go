package hosttest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// Terminal is a terminal of 80 columns and 24 lines, which ends with the test.
type Terminal struct {
	// Master is the side of the person, Slave that of the program.
	Master, Slave *os.File

	drained chan struct{}
	mu      sync.Mutex
	written strings.Builder
}

// OpenTerminal makes a terminal.
func OpenTerminal(t testing.TB) *Terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	control(t, master, func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0) })
	control(t, master, func(fd int) error { n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); return err }) //nolint:wrapcheck // it fails the test
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &Terminal{Master: master, Slave: slave, drained: make(chan struct{})}
	p.Resize(t, 80, 24)
	go p.drain()
	t.Cleanup(p.close)
	return p
}

// control calls f with the descriptor of a master. [os.File.Fd] would make it
// blocking, and then Close would wait for the reader.
func control(t testing.TB, master *os.File, f func(fd int) error) {
	t.Helper()
	conn, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

func (p *Terminal) drain() {
	defer close(p.drained)
	buffer := make([]byte, 4096)
	for {
		n, err := p.Master.Read(buffer)
		p.mu.Lock()
		p.written.Write(buffer[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// close ends the drain: a master whose slave is closed has nothing more to read.
func (p *Terminal) close() {
	_ = p.Slave.Close()
	<-p.drained
	_ = p.Master.Close()
}

// HangUp ends the terminal as a broken connection does: the leader of the session
// that it controls gets SIGHUP, and a program that still writes to it gets an error.
func (p *Terminal) HangUp(t testing.TB) {
	t.Helper()
	if err := p.Master.Close(); err != nil {
		t.Fatal(err)
	}
	<-p.drained
}

// Resize changes the size of the terminal.
func (p *Terminal) Resize(t testing.TB, width, height uint16) {
	t.Helper()
	control(t, p.Master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height})
	})
}

// Text is all that was written to the terminal, escape sequences included.
func (p *Terminal) Text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

// patience is how long Await waits.
const patience = time.Minute

// Await waits until a text was written to the terminal.
func (p *Terminal) Await(t testing.TB, want string) {
	t.Helper()
	wait.Eventually(t, patience, func() bool { return strings.Contains(p.Text(), want) }, "no %q on the terminal", want)
}
