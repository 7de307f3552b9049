package top

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
)

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
	// Source is asked for what is shown. Required.
	Source Source
	// Interval passes between an answer and the next question; 0 is
	// DefaultInterval, less than MinInterval an error. Keys change it.
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

// complete checks options and puts the defaults in.
func (o Options) complete() (Options, error) {
	switch {
	case o.Source == nil:
		return o, errors.New("top: Options.Source is missing: give the function that reads a snapshot")
	case o.Out == nil:
		return o, errors.New("top: Options.Out is missing: give the writer of the screen")
	case o.Interval != 0 && o.Interval < MinInterval:
		return o, fmt.Errorf("top: interval %v is too short: at least %v is needed", o.Interval, MinInterval)
	case o.Timeout < 0:
		return o, fmt.Errorf("top: timeout %v is negative: give a time above 0, or 0 for %v", o.Timeout, DefaultTimeout)
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
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
