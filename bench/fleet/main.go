// Command fleet runs very many workers against one Redis: real clients (package worker) with Go handlers that only take time,
// in one process, so that hosts and programs are no part of it. It measures what an idle worker costs Redis, how many
// tasks a second the fleet does, what a task costs Redis then, and whether workers and queues get equal shares. The
// tables are Markdown; bench/README.md says how to read them, docs/SCALING.md what follows.
package main

import (
	"context"
	"errors"
	"io"

	"github.com/tdf-go/tdf/bench/frame"
)

func main() { frame.Main("fleet", run) }

// run measures and writes the tables to out and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	if err := raiseFiles(o.files()); err != nil {
		return err
	}
	return frame.Within(ctx, o.limit, func(ctx context.Context) error {
		f, err := gather(ctx, o, progress)
		if err != nil {
			return err
		}
		if err := errors.Join(f.measure(), f.close()); err != nil {
			return err
		}
		_, err = io.WriteString(out, f.tables())
		return err
	})
}
