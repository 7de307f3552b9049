// Command fleet runs very many workers against one Redis: real clients (package worker) with Go handlers that only take time,
// in one process, so that hosts and programs are no part of it. It measures what an idle worker costs Redis, how many
// tasks a second the fleet does, what a task costs Redis then, and whether workers and queues get equal shares. The
// tables are Markdown; bench/README.md says how to read them, docs/SCALING.md what follows.
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
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// run measures and writes the tables to out and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	if err := raiseFiles(o.files()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("-limit=%s is over", o.limit))
	defer cancel()
	f, err := gather(ctx, o, progress)
	if err == nil {
		err = f.measure()
		err = errors.Join(err, f.close())
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, f.tables())
	return err
}
