package verbs

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tdf-go/tdf/internal/base/cli"
)

// progress is what a display shows. Its display calls it from one goroutine.
type progress interface {
	// look reads what there is to show, unless somebody else does.
	look(ctx context.Context)
	// lines are what a terminal shows, the first one with a bar, or what a line without a terminal is made of; none as long as
	// nothing is known.
	lines(terminal bool) []string
}

// display shows a progress on stderr: lines that are drawn anew on a terminal, else a line every ten seconds.
type display struct {
	of       progress
	out      io.Writer
	terminal bool
	pause    time.Duration // between two lines where there is no terminal

	drawn int    // lines on the terminal
	shown string // these lines

	stop func()
	done sync.WaitGroup
}

// How often a progress is looked at and drawn, and written where there is no terminal.
const (
	lookPause     = time.Second
	drawPause     = 250 * time.Millisecond
	plainInterval = 10 * time.Second
)

func newDisplay(ctx context.Context, s *session, of progress) *display {
	ctx, cancel := context.WithCancel(ctx)
	out := s.cmd.ErrOrStderr()
	d := &display{of: of, out: out, terminal: cli.IsTerminal(out), pause: plainInterval, stop: cancel}
	d.done.Go(func() { d.run(ctx) })
	return d
}

// run looks and draws until the end.
func (d *display) run(ctx context.Context) {
	pause := d.pause
	if d.terminal {
		pause = drawPause
	}
	looks, draws := time.NewTicker(lookPause), time.NewTicker(pause)
	defer looks.Stop()
	defer draws.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-looks.C:
			d.of.look(ctx)
		case <-draws.C:
			d.draw()
		}
	}
}

func (d *display) draw() {
	switch lines := d.of.lines(d.terminal); {
	case lines == nil:
	case d.terminal:
		d.paint(lines)
	default:
		fmt.Fprintln(d.out, strings.Join(lines, "; "))
	}
}

// paint puts lines in the place of those that were drawn last.
func (d *display) paint(lines []string) {
	width := terminalWidth(d.out)
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], width-1, "…")
	}
	all := strings.Join(lines, "\n")
	if d.drawn > 0 && all == d.shown {
		return
	}
	var text strings.Builder
	text.WriteString("\r")
	if d.drawn > 1 {
		fmt.Fprintf(&text, "\x1b[%dA", d.drawn-1)
	}
	text.WriteString("\x1b[J" + all)
	d.drawn, d.shown = len(lines), all
	_, _ = io.WriteString(d.out, text.String()) // a terminal that cannot be written shows nothing
}

func terminalWidth(w io.Writer) int {
	const otherwise = 80
	f, ok := w.(*os.File)
	if !ok {
		return otherwise
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 2 {
		return otherwise
	}
	return width
}

// close ends the display. On a terminal the first line stays, and the cursor goes to a line of its own.
func (d *display) close() {
	d.stop()
	d.done.Wait()
	if lines := d.of.lines(true); d.terminal && lines != nil {
		d.paint(lines[:1])
		fmt.Fprintln(d.out)
	}
}

// doneText says how many tasks have ended: on a terminal with a bar.
func doneText(done, total int64, terminal bool) string {
	switch {
	case !terminal:
		return fmt.Sprintf("%d/%d", done, total)
	case total < 1:
		return ""
	}
	const width = 20
	bar := progressbar.NewOptions64(total, progressbar.OptionSetWriter(io.Discard), progressbar.OptionSetWidth(width),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false))
	_ = bar.Set64(done) // it goes nowhere
	return strings.TrimSpace(bar.String())
}
