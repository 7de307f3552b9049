// Package frame is what the programs of benchmarks share: how one runs and is stopped, how long it may take, and files of
// figures for programs.
package frame

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/store"
)

// Run is a benchmark: it writes its tables to out and its progress to progress.
type Run func(ctx context.Context, args []string, out, progress io.Writer) error

// Main runs a benchmark with the arguments of the process until it is over or is told to stop (SIGINT, SIGTERM). One that fails
// ends the process with 1 and a line that begins with the name.
func Main(name string, run Run) {
	store.Silence()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Within measures for as long as the option -limit says. Where that is over, or ctx, the error says so, and not what came of it.
func Within(ctx context.Context, limit time.Duration, measure func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("-limit=%s is over", limit))
	defer cancel()
	err := measure(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// AtLeastOne is an error if one of these options, by name, is less than 1.
func AtLeastOne(options map[string]int) error {
	for name, value := range options {
		if value < 1 {
			return fmt.Errorf("-%s=%d: must be at least 1", name, value)
		}
	}
	return nil
}

// WriteJSON writes figures to a file.
func WriteJSON(file string, figures any) error {
	text, err := json.MarshalIndent(figures, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}
