package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/wait"
)

// pty is a terminal of the kernel: the screen has one side of it, the test the other.
type pty struct {
	master, slave *os.File
	drained       chan struct{}

	mu      sync.Mutex
	written strings.Builder
}

func openPTY(t *testing.T) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{master: master, slave: slave, drained: make(chan struct{})}
	p.resize(t, 80, 24)
	go p.drain()
	t.Cleanup(p.close)
	return p
}

func (p *pty) drain() {
	defer close(p.drained)
	buffer := make([]byte, 4096)
	for {
		n, err := p.master.Read(buffer)
		p.mu.Lock()
		p.written.Write(buffer[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// close ends the drain: a master whose slave is closed has nothing more to read.
func (p *pty) close() {
	_ = p.slave.Close()
	<-p.drained
	_ = p.master.Close()
}

func (p *pty) resize(t *testing.T, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(p.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		t.Fatal(err)
	}
}

func (p *pty) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

func (p *pty) await(t *testing.T, want string) {
	t.Helper()
	wait.Eventually(t, 10*time.Second, func() bool { return strings.Contains(p.text(), want) }, "no %q on the terminal", want)
}

// settings are those of the terminal, which must be as before at the end.
func (p *pty) settings(t *testing.T) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

func (p *pty) options(source Source, environ ...string) Options {
	return Options{In: p.slave, Out: p.slave, Source: source, Interval: MinInterval, Environ: append([]string{"TERM=xterm-256color"}, environ...)}
}

// run starts Run and hands back where its error comes.
func run(ctx context.Context, o Options) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	return ended
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	p := openPTY(t)
	before := p.settings(t)
	ended := run(t.Context(), p.options(steady))
	p.await(t, "licensed")
	if p.settings(t) == before {
		t.Error("the terminal is not in raw mode")
	}
	fmt.Fprint(p.master, "?")
	p.await(t, "longer, shorter interval")
	fmt.Fprint(p.master, "q")
	if err := wait.Receive(t, 10*time.Second, ended, "Run does not end"); err != nil {
		t.Errorf("error %v", err)
	}
	if p.settings(t) != before {
		t.Error("the terminal is not as it was")
	}
	p.await(t, "\x1b[?1049h") // the alternate screen was entered
	p.await(t, "\x1b[?1049l") // and left
}

func TestTerminalResize(t *testing.T) {
	t.Parallel()
	p := openPTY(t)
	p.resize(t, 40, 10)
	ended := run(t.Context(), p.options(steady))
	p.await(t, "QUEUE")
	p.resize(t, 120, 40)
	// The kernel tells the processes of the terminal only, of which this is none.
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	p.await(t, "Newest failures")
	fmt.Fprint(p.master, "q")
	if err := wait.Receive(t, 10*time.Second, ended, "Run does not end"); err != nil {
		t.Errorf("error %v", err)
	}
}

// TestTerminalContext: the end of ctx ends the screen, the question under way
// and the rest, and the terminal is as it was.
func TestTerminalContext(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]Source{"while resting": steady, "while asking": hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openPTY(t)
			before := p.settings(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := p.options(source)
			o.Interval = time.Hour
			ended := run(ctx, o)
			p.await(t, "q leave")
			cancel()
			if err := wait.Receive(t, 10*time.Second, ended, "Run does not end"); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if p.settings(t) != before {
				t.Error("the terminal is not as it was")
			}
		})
	}
}

// TestTerminalLeaving: a key ends the screen however long the rest or the
// answer would take, and Run waits for the source to return.
func TestTerminalLeaving(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]bool{"while resting": false, "while asking": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openPTY(t)
			asked := 0
			o := p.options(func(ctx context.Context) (Snapshot, error) {
				asked++
				defer func() { asked-- }()
				if hangs {
					return hang(ctx)
				}
				return sample(), nil
			})
			o.Interval, o.Timeout = time.Hour, time.Hour
			ended := run(t.Context(), o)
			if p.await(t, "q leave"); !hangs {
				p.await(t, "licensed")
			}
			fmt.Fprint(p.master, "q")
			if err := wait.Receive(t, 10*time.Second, ended, "Run does not end"); err != nil || asked != 0 {
				t.Errorf("error %v, %d questions under way", err, asked)
			}
		})
	}
}

// TestTerminalAway: the screen goes on by itself when the source is back.
func TestTerminalAway(t *testing.T) {
	t.Parallel()
	p := openPTY(t)
	asked := 0
	ended := run(t.Context(), p.options(func(context.Context) (Snapshot, error) {
		if asked++; asked == 1 {
			return Snapshot{}, errAway
		}
		return sample(), nil
	}))
	p.await(t, "NO ANSWER")
	p.await(t, "licensed")
	fmt.Fprint(p.master, "\x03")
	if err := wait.Receive(t, 10*time.Second, ended, "Run does not end"); err != nil {
		t.Errorf("error %v", err)
	}
}

// coloured finds a foreground or background colour among the attributes of a text.
var coloured = regexp.MustCompile(`\x1b\[(\d+;)*([34]\d|9[0-7]|10[0-7])(;\d+)*m`)

func TestNoColor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environ string
		want    bool
	}{{"NO_COLOR=yes", false}, {"NO_COLOR=1", false}, {"NO_COLOR=", true}} {
		t.Run(c.environ, func(t *testing.T) {
			t.Parallel()
			p := openPTY(t)
			away := func(context.Context) (Snapshot, error) { return Snapshot{}, errAway }
			ended := run(t.Context(), p.options(away, c.environ))
			p.await(t, "NO ANSWER")
			fmt.Fprint(p.master, "q")
			if err := wait.Receive(t, 10*time.Second, ended, "Run does not end"); err != nil {
				t.Errorf("error %v", err)
			}
			if got := coloured.MatchString(p.text()); got != c.want {
				t.Errorf("colours: %v, want %v: %q", got, c.want, p.text())
			}
		})
	}
}

// TestDumbTerminal: a terminal that cannot place its cursor gets plain tables.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	p := openPTY(t)
	if err := Run(t.Context(), p.options(steady, "TERM=dumb")); err != nil {
		t.Fatal(err)
	}
	p.await(t, "Newest failures: 3")
	if strings.Contains(p.text(), "\x1b") {
		t.Errorf("escape sequences: %q", p.text())
	}
}
