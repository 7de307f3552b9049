package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// pty is a terminal with the screen on it.
type pty struct{ *hosttest.Terminal }

func openPTY(t *testing.T) *pty {
	t.Helper()
	return &pty{hosttest.OpenTerminal(t)}
}

// settings are those of the terminal, which must be as before at the end.
func (p *pty) settings(t *testing.T) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(p.Slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

func (p *pty) options(source Source, environ ...string) Options {
	return Options{In: p.Slave, Out: p.Slave, Source: source, Interval: MinInterval, Environ: append([]string{"TERM=xterm-256color"}, environ...)}
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
	p.Await(t, "licensed")
	if p.settings(t) == before {
		t.Error("the terminal is not in raw mode")
	}
	fmt.Fprint(p.Master, "?")
	p.Await(t, "longer, shorter interval")
	fmt.Fprint(p.Master, "q")
	if err := wait.Receive(t, 10*time.Second, ended, "Run does not end"); err != nil {
		t.Errorf("error %v", err)
	}
	if p.settings(t) != before {
		t.Error("the terminal is not as it was")
	}
	p.Await(t, "\x1b[?1049h") // the alternate screen was entered
	p.Await(t, "\x1b[?1049l") // and left
}

func TestTerminalResize(t *testing.T) {
	t.Parallel()
	p := openPTY(t)
	p.Resize(t, 40, 10)
	ended := run(t.Context(), p.options(steady))
	p.Await(t, "QUEUE")
	p.Resize(t, 120, 40)
	// The kernel tells only the processes of the terminal, and this process has none.
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	p.Await(t, "Newest failures")
	fmt.Fprint(p.Master, "q")
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
			p.Await(t, "q leave")
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
			if p.Await(t, "q leave"); !hangs {
				p.Await(t, "licensed")
			}
			fmt.Fprint(p.Master, "q")
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
	p.Await(t, "NO ANSWER")
	p.Await(t, "licensed")
	fmt.Fprint(p.Master, "\x03")
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
			p.Await(t, "NO ANSWER")
			fmt.Fprint(p.Master, "q")
			if err := wait.Receive(t, 10*time.Second, ended, "Run does not end"); err != nil {
				t.Errorf("error %v", err)
			}
			if got := coloured.MatchString(p.Text()); got != c.want {
				t.Errorf("colours: %v, want %v: %q", got, c.want, p.Text())
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
	p.Await(t, "Newest failures: 3")
	if strings.Contains(p.Text(), "\x1b") {
		t.Errorf("escape sequences: %q", p.Text())
	}
}
