// Command compare measures TDF beside its peers: no-op programs beside xargs, GNU parallel and loops in C and Go; no-op Go
// handlers, opening and latency beside asynq, BullMQ and Celery. Each run has a private redis-server, all contenders run
// once a round, and the ratios of TDF to its peers are computed round by round. It writes Markdown and JSON; with -check it
// compares the ratios with those of an earlier JSON file. bench/README.md says how to read the tables.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tdf-go/tdf/bench/frame"
)

func main() { frame.Main("compare", run) }

// run measures, writes the tables to out and into the files that the options name, and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	var before *Results
	if o.check != "" {
		if before, err = readResults(o.check); err != nil {
			return err
		}
		if err := o.like(before); err != nil {
			return err
		}
	}
	return frame.Within(ctx, o.limit, func(ctx context.Context) error { return measureAndConclude(ctx, o, before, out, progress) })
}

func measureAndConclude(ctx context.Context, o options, before *Results, out, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "tdf-compare-")
	if err != nil {
		return fmt.Errorf("directory for the runs: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	now, err := measure(ctx, o, dir, progress)
	if err != nil {
		return err
	}
	return conclude(o, before, now, out)
}

func measure(ctx context.Context, o options, dir string, progress io.Writer) (*Results, error) {
	b := &bench{o: o, dir: dir, progress: progress}
	groups, err := b.groups(ctx)
	if err != nil {
		return nil, err
	}
	if err := missing(o.contenders, groups); err != nil {
		return nil, err
	}
	r := &Results{
		Date: time.Now().UTC().Truncate(time.Second), Machine: thisMachine(), Versions: b.versions(ctx), Sizes: o.sizes,
	}
	for _, g := range groups {
		samples, err := b.rounds(ctx, g.contenders)
		if err != nil {
			return nil, err
		}
		for _, t := range g.tables {
			r.Tables = append(r.Tables, t.result(g.contenders, samples))
		}
	}
	return r, nil
}

// conclude writes what was measured, and is an error if that is worse than before.
func conclude(o options, before, now *Results, out io.Writer) error {
	text := now.markdown()
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	if o.markdown != "" {
		if err := os.WriteFile(o.markdown, []byte(text), 0o600); err != nil {
			return err
		}
	}
	if o.json != "" {
		if err := frame.WriteJSON(o.json, now); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	report, err := compare(before, now, o.tolerance, o.latencyTolerance)
	if _, writeErr := io.WriteString(out, report); writeErr != nil {
		return writeErr
	}
	return err
}
