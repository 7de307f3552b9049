// Command plans measures what plans cost: it builds one of layers, in which each task needs some of the layer before, and
// lets real servers and workers with a Go handler run it, beside as many tasks that need nothing; and it lets a server
// release half a plan at once. Each run has a private redis-server; the rounds are interleaved, and the results of all
// tasks are checked. The tables are Markdown; bench/README.md says how to read them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tdf-go/tdf/internal/store"
)

func main() {
	store.Silence()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "plans:", err)
		os.Exit(1)
	}
}

// run measures and writes the tables to out and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("-limit=%s is over", o.limit))
	defer cancel()
	f, err := measure(ctx, o, progress)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, f.tables(o)); err != nil || !o.strict {
		return err
	}
	return f.check()
}
