package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

// display shows the progress of a wait on stderr: a bar on a terminal, else a
// line every ten seconds.
type display struct {
	out   io.Writer
	bar   *progressbar.ProgressBar
	every time.Duration
	began time.Time

	mu      sync.Mutex
	last    manager.Progress
	first   int // tasks that had ended when the wait began
	started bool
	stop    chan struct{}
	done    sync.WaitGroup
}

func newDisplay(s *session) *display {
	d := &display{out: s.cmd.ErrOrStderr(), every: plainInterval, began: time.Now(), stop: make(chan struct{})}
	if !cli.IsTerminal(d.out) {
		d.done.Go(d.lines)
	}
	return d
}

// update takes the progress made.
func (d *display) update(p manager.Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = p
	if !d.started {
		d.started, d.first = true, p.Done
	}
	if !cli.IsTerminal(d.out) {
		return
	}
	if d.bar == nil {
		d.bar = newBar(d.out, p)
	}
	d.bar.Describe(countsLine(p.States) + runningText(p.Running))
	_ = d.bar.Set(p.Done) // a terminal that cannot be written shows nothing
}

func newBar(w io.Writer, p manager.Progress) *progressbar.ProgressBar {
	return progressbar.NewOptions(p.Total,
		progressbar.OptionSetDescription(countsLine(p.States)),
		progressbar.OptionSetWriter(w), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("tasks"), progressbar.OptionSetWidth(20), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionShowDescriptionAtLineEnd(), progressbar.OptionUseANSICodes(true))
}

// lines writes one every so often.
func (d *display) lines() {
	tick := time.NewTicker(d.every)
	defer tick.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-tick.C:
			d.mu.Lock()
			line := progressLine(d.last, d.first, time.Since(d.began))
			d.mu.Unlock()
			fmt.Fprintln(d.out, line)
		}
	}
}

// progressLine says how far the tasks are, how fast, and how long it will take.
func progressLine(p manager.Progress, first int, elapsed time.Duration) string {
	rate := float64(p.Done-first) / elapsed.Seconds()
	line := fmt.Sprintf("%d/%d  %s  %.1f tasks/s", p.Done, p.Total, countsLine(p.States)+runningText(p.Running), rate)
	if left := p.Total - p.Done; rate > 0 && left > 0 {
		line += "  " + time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second).String() + " left"
	}
	return line
}

// runningText says how far some of the running tasks are.
func runningText(running []manager.RunningTask) string {
	const most, width = 2, 30
	text := ""
	for i, t := range running {
		if i == most {
			return text + "  ..."
		}
		text += fmt.Sprintf("  task %d: %s", t.ID, cli.Safe(shorten(t.Progress.String(), width)))
	}
	return text
}

// close ends the display and leaves the cursor on a line of its own.
func (d *display) close() {
	close(d.stop)
	d.done.Wait()
	if d.bar != nil {
		fmt.Fprintln(d.out)
	}
}
