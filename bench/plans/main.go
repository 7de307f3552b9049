// Command plans measures what plans cost: it builds one of layers, in which each task needs some of the layer before, and
// lets real servers and workers with a Go handler run it, beside as many tasks that need nothing; and it lets a server
// release half a plan at once. Each run has a private redis-server; the rounds are interleaved, and the results of all
// tasks are checked. The tables are Markdown; bench/README.md says how to read them.
package main

import (
	"context"
	"io"

	"github.com/tdf-go/tdf/bench/frame"
)

func main() { frame.Main("plans", run) }

// run measures and writes the tables to out and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	var f *figures
	err = frame.Within(ctx, o.limit, func(ctx context.Context) (err error) {
		f, err = measure(ctx, o, progress)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, f.tables(o)); err != nil || !o.strict {
		return err
	}
	return f.check()
}
