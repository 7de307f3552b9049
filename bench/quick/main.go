// Command quick compares how many external programs a second several systems start and finish: xargs -P2, asynq (from
// the nested module bench/peers) and TDF, whose built programs it starts; what containment alone costs, without
// Redis; and what a claim costs behind tasks that fit nobody. Every task runs run.sh N, which echoes N. The rounds are
// interleaved, because a busy machine slows neighbours in time alike; medians and their ratios are printed as
// Markdown. bench/README.md says how to read them.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/tdf-go/tdf/bench/contend"
	"github.com/tdf-go/tdf/bench/frame"
)

func main() { frame.Main("quick", run) }

// run measures and writes the tables to out and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tdf-quick-")
	if err != nil {
		return fmt.Errorf("directory for the runs: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	script, err := contend.WriteProgram(dir)
	if err != nil {
		return err
	}
	if o.table != containmentTable {
		if err := runOnRedis(ctx, o, dir, script, out, progress); err != nil {
			return err
		}
	}
	if o.table == allTables {
		_, _ = fmt.Fprintln(out)
	}
	if o.table == containmentTable || o.table == allTables {
		return compareContainment(ctx, o, dir, script, out, progress)
	}
	return nil
}

// runOnRedis brings a Redis of its own if none was given.
func runOnRedis(ctx context.Context, o options, dir, script string, out, progress io.Writer) error {
	if o.redis == "" {
		addr, stop, err := startRedis(ctx, dir)
		if err != nil {
			return err
		}
		defer stop()
		o.redis = addr
	}
	if o.table == claimsTable {
		return compareClaims(ctx, o, out, progress)
	}
	all, err := systems(ctx, o, dir, script)
	if err != nil {
		return err
	}
	return compareSystems(ctx, o, all, out, progress)
}
