// Command layout measures ways of laying tasks out in Redis: the CPU time and the bytes that one task costs over a
// whole life (open, claim, report, settle, archive), for several layouts, listpack limits, kinds of task, in batches
// and one at a time. Each run has a private redis-server on a unix socket; the rounds are interleaved and the medians
// printed as Markdown. The choice made from its figures is docs/decisions/0001-key-layout.md.
//
// It is a spike: the scripts here resemble those of the store but are not them.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/tdf-go/tdf/bench/frame"
)

func main() { frame.Main("layout", run) }

// run parses the arguments, measures, writes the tables to out and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("layout", flag.ContinueOnError)
	flags.SetOutput(progress)
	tasks := flags.Int("tasks", 20000, "tasks a run; a quarter of it where they go one at a time")
	rounds := flags.Int("rounds", 3, "interleaved runs of each case")
	batch := flags.Int("batch", 100, "tasks a batch; every layout is also measured with batches of 1")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := frame.AtLeastOne(map[string]int{"tasks": *tasks, "rounds": *rounds, "batch": *batch}); err != nil {
		return err
	}
	if *batch > 500 {
		return fmt.Errorf("-batch=%d: must be at most 500, a script cannot unpack more values safely", *batch)
	}
	return compare(ctx, *tasks, *rounds, *batch, out, progress)
}
