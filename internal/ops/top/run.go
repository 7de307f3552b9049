package top

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// Run shows the screen until the reader leaves, which is no error, or ctx
// ends, whose error it returns; the terminal is then as it was. An error of the
// source ends it only where one snapshot was asked for: see [Options.Once].
// No goroutine is left behind, provided that the source returns when its
// context ends.
func Run(ctx context.Context, o Options) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
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
