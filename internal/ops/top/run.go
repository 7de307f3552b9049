// Package top is the live screen of `tdf-manager top`: queues, workers, rates
// and the newest failures, read again and again from a [Source]. Where no
// terminal is, it prints one snapshot as plain tables.
//
// The screen is a model in the sense of Bubble Tea: [Run] starts the program,
// every message goes through one Update, and what is seen is a function of the
// model alone. The rates are differences of the counters of snapshots, taken
// by this package's own clock; ages are told by the clock of the snapshot.
package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/manager"
)

// Run shows the screen until the reader leaves, which is no error, or ctx
// ends, whose error it returns; the terminal is then as it was. An error of the
// source ends it only where one snapshot was asked for: see [Options.Once].
// No goroutine is left behind, provided that the source returns when its
// context ends.
func Run(ctx context.Context, o Options) error {
	o = o.complete()
	feed := newFeed(ctx, o)
	defer feed.close()
	if !o.live() {
		return once(feed, o)
	}
	return show(ctx, feed, o)
}

// show runs the program. A context that ends asks it to quit, as a key does,
// so that it leaves the terminal in order.
func show(ctx context.Context, f *feed, o Options) error {
	p := tea.NewProgram(newScreen(f, o), programOptions(o)...)
	stop := context.AfterFunc(ctx, p.Quit)
	defer stop()
	_, err := p.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("terminal screen: %w", err)
	}
	return nil
}

// programOptions leaves signals to the command, which turns them into the end
// of the context.
func programOptions(o Options) []tea.ProgramOption {
	options := []tea.ProgramOption{
		tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Environ), tea.WithoutSignalHandler(),
	}
	if o.variable("NO_COLOR") != "" { // any value: the library takes only what reads as true
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	}
	return options
}

// Bounds and defaults of [Options].
const (
	DefaultInterval = 2 * time.Second
	MinInterval     = 200 * time.Millisecond
	DefaultTimeout  = 10 * time.Second
)

// Options of [Run].
type Options struct {
	// In is where keys come from, Out where the screen goes. Both must be
	// terminals for a live screen; if one is not, Run does as with Once.
	In  io.Reader
	Out io.Writer
	// Source has the figures.
	Source Source
	// Interval passes between an answer and the next question; 0 is
	// DefaultInterval. Keys change it, not below MinInterval.
	Interval time.Duration
	// Timeout is how long one answer may take; 0 is DefaultTimeout.
	Timeout time.Duration
	// Once prints one snapshot as plain tables and ends.
	Once bool
	// Environ holds TERM, NO_COLOR and what else describes the terminal, as
	// NAME=value; nil is the environment of the process.
	Environ []string
	// Now is the clock by which rates are taken; nil is time.Now.
	Now func() time.Time
}

// complete puts the defaults in.
func (o Options) complete() Options {
	o.Interval, o.Timeout = cmp.Or(o.Interval, DefaultInterval), cmp.Or(o.Timeout, DefaultTimeout)
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// live says whether a screen can be drawn.
func (o Options) live() bool {
	return !o.Once && isTerminal(o.In) && isTerminal(o.Out) && o.variable("TERM") != "dumb"
}

// variable is the last value of an environment variable.
func (o Options) variable(name string) string {
	for _, pair := range slices.Backward(o.Environ) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Source reads what is shown. It must return when ctx ends, which it does when
// the reader leaves or after [Options.Timeout]. An error is shown beside the
// last snapshot, and the source is asked again after the interval.
type Source func(ctx context.Context) (Snapshot, error)

// Snapshot is the state of one namespace at one moment. Its texts may hold
// anything: they are cleaned before they are shown. Times are shown in the
// location they carry. Its lists are shown in the order given, and not changed;
// workers that have stopped are not shown.
type Snapshot struct {
	// Overview is read by the clock of Redis, from which ages are told; without a time it is of the moment it came.
	manager.Overview

	Redis string // the address
	// Done and Failed count, over the life of the namespace, tasks that ended
	// and rounds that failed. A counter that falls starts its rates afresh.
	Done, Failed int64
}

// once prints one snapshot.
func once(f *feed, o Options) error {
	a := f.read()
	if a.err != nil {
		return fmt.Errorf("read the snapshot: %w", a.err)
	}
	var m meters
	m.add(a.snapshot, a.at)
	if _, err := io.WriteString(o.Out, plain(a.snapshot, &m)); err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	return nil
}

// plain is a snapshot as text, without styles and with every cell whole.
func plain(s Snapshot, m *meters) string {
	var b strings.Builder
	for _, fact := range facts(s, m, "time "+s.At.Format(clock)) {
		fmt.Fprintln(&b, fact)
	}
	for i, t := range tables(s, m) {
		set := t.set(0)
		fmt.Fprintf(&b, "\n%s: %d\n%s\n", titles[i], len(t.rows), set.head())
		for _, r := range t.rows {
			fmt.Fprintln(&b, set.line(r.cells))
		}
	}
	return b.String()
}

// answer is what the source said; err is nil, or there is no snapshot.
type answer struct {
	snapshot Snapshot
	err      error
	at       time.Time // by our clock
}

// rested says that the interval of a turn is over.
type rested struct{ turn int }

// feed asks the source and tells the time. The program does not wait for the
// commands it started; the feed does, when it is closed.
type feed struct {
	ask  func() (Snapshot, error)
	wait func(time.Duration) bool
	now  func() time.Time
	stop context.CancelFunc

	mu     sync.RWMutex // held for reading while a command runs
	closed bool
}

// newFeed makes a feed that must be closed. Its commands end with ctx.
func newFeed(ctx context.Context, o Options) *feed {
	ctx, stop := context.WithCancel(ctx)
	return &feed{
		ask: func() (Snapshot, error) {
			ctx, done := context.WithTimeout(ctx, o.Timeout)
			defer done()
			s, err := o.Source(ctx)
			if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				err = fmt.Errorf("no answer within %v: %w", o.Timeout, err)
			}
			return s, err
		},
		wait: func(d time.Duration) bool { return timing.Pause(ctx, d) },
		now:  o.Now,
		stop: stop,
	}
}

// close ends what is under way and waits for it.
func (f *feed) close() {
	f.stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// read asks the source once.
func (f *feed) read() answer {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return answer{err: context.Canceled, at: f.now()}
	}
	s, err := f.ask()
	at := f.now()
	if s.At.IsZero() {
		s.At = at
	}
	return answer{snapshot: s, err: err, at: at}
}

// rest waits for the interval of a turn.
func (f *feed) rest(d time.Duration, turn int) rested {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.closed {
		f.wait(d)
	}
	return rested{turn}
}
