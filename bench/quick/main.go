// Command quick compares how many external programs a second several systems start and finish: xargs -P2, asynq (from
// the nested module bench/peers) and TDF, whose built programs it starts. Every task runs `sh run.sh N`, which echoes N.
// The rounds are interleaved, because a busy machine slows neighbours in time alike; medians and their ratios are
// printed as Markdown. bench/README.md says how to read them.
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
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "quick:", err)
		os.Exit(1)
	}
}

// options say what to measure and where.
type options struct {
	tasks, rounds, parallel int
	redis                   string // host:port of a Redis that may be written to; empty: a private one is started
	peers                   string // directory of the nested module
	bin                     string // directory of TDF's built programs
}

// run measures and writes the table to out and its progress to progress.
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
	if o.redis == "" {
		addr, stop, err := startRedis(ctx, dir)
		if err != nil {
			return err
		}
		defer stop()
		o.redis = addr
	}
	all, err := contenders(ctx, o, dir)
	if err != nil {
		return err
	}
	return compare(ctx, o, all, out, progress)
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("quick", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.IntVar(&o.tasks, "tasks", 1000, "tasks a run")
	flags.IntVar(&o.rounds, "rounds", 5, "interleaved runs of each contender")
	flags.IntVar(&o.parallel, "parallel", 2, "tasks at a time")
	flags.StringVar(&o.redis, "redis", "", "host:port of a Redis that nobody else uses (default: start a private redis-server)")
	flags.StringVar(&o.peers, "peers", "bench/peers", "directory of the peers' module")
	flags.StringVar(&o.bin, "bin", "bin", "directory of tdf-server and tdf-worker")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for name, value := range map[string]int{"tasks": o.tasks, "rounds": o.rounds, "parallel": o.parallel} {
		if value < 1 {
			return o, fmt.Errorf("-%s=%d: must be at least 1", name, value)
		}
	}
	return o, nil
}
