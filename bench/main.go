// Command bench measures TDF: beside its peers, and what tasks, plans, containment and large fleets cost. Its arguments are
// the names of tables; without any it lists them. Each table has redis-servers of its own. What is compared runs in
// interleaved rounds, because a busy machine slows neighbours in time alike, and ratios are computed round by round. It
// writes Markdown and, where asked, JSON. bench/README.md says how to read the tables.
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
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
)

func main() {
	conn.Silence()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// definition is a table that the arguments can name.
type definition struct {
	name, about string
	size        // the default
	measure     func(*bench, context.Context) ([]Table, error)
}

func definitions() []definition {
	return []definition{
		{"programs", "no-op programs: TDF beside xargs, GNU parallel, loops in C and Go, asynq",
			size{Tasks: 2000, Rounds: 5, Slots: 2}, (*bench).programs},
		{"wide", "no-op programs, more at a time than there are cores: TDF beside xargs",
			size{Tasks: 2000, Rounds: 5, Slots: 4}, (*bench).wide},
		{"containment", "what each layer of containment costs, without Redis",
			size{Tasks: 1000, Rounds: 5, Slots: 2}, (*bench).containment},
		{"directories", "what the directory of a round costs, without Redis",
			size{Tasks: 1000, Rounds: 5, Slots: 2}, (*bench).directories},
		{"uploads", "what it costs to upload a directory, to install it, and to return files", size{Tasks: 10, Rounds: 5}, (*bench).uploads},
		{"handlers", "no-op handlers, and opening: TDF beside asynq, BullMQ and Celery",
			size{Tasks: 20_000, Rounds: 5, Workers: 1, Slots: 50}, (*bench).handlers},
		{"latency", "from opening a task to its handler: TDF beside the same",
			size{Tasks: 1000, Rounds: 5, Workers: 1, Slots: 50, Rate: 200}, (*bench).latency},
		{"jobs", "tasks of a job beside tasks of no job", size{Tasks: 20_000, Rounds: 5, Workers: 1, Slots: 50}, (*bench).jobs},
		{"http", "opening tasks over HTTP beside the package", size{Tasks: 20_000, Rounds: 9}, (*bench).openedOverHTTP},
		{"work", "claims and reports: a worker over HTTP beside one that reaches Redis",
			size{Tasks: 4000, Rounds: 9, Workers: 1, Slots: 2 * mostATurn}, (*bench).worked},
		{"lists", "how long lists take over HTTP", size{Tasks: 1_000_000, Rounds: 5}, (*bench).lists},
		{"claims", "a claim behind many tasks that fit nobody", size{Tasks: 1000, Rounds: 5}, (*bench).claims},
		{"plans", "a plan of layers beside as many tasks that need nothing",
			size{Tasks: 100_000, Rounds: 20, Workers: 2, Slots: 8}, (*bench).plans},
		{"memory", "bytes of Redis a task, waiting and archived", size{Tasks: 50_000, Slots: 16}, (*bench).memory},
		{"scale", "tasks behind few and behind many that wait", size{Tasks: 3000, Rounds: 15, Slots: 16}, (*bench).scale},
		{"collected", "what tdf-manager results takes, in each form", size{Tasks: collectedTasks, Slots: 16}, (*bench).collected},
		{"quiet", "a server while nothing is due", size{}, (*bench).quiet},
		{"fleet", "very many workers on one Redis: speed, fairness, the cost of an idle one",
			size{Tasks: 20_000, Workers: 1000, Slots: 1}, (*bench).fleet},
		{"flow", "memory of Redis while tasks come and leave it", size{Tasks: 2_000_000, Slots: 16}, (*bench).flow},
	}
}

// bench measures one table.
type bench struct {
	*options
	size
	dir      string // for temporary files
	progress io.Writer
	results  *Results
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// run measures, writes the tables to out and into the files that the options name, and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	var now *Results
	err = within(ctx, o.limit, func(ctx context.Context) (err error) {
		now, err = measure(ctx, o, progress)
		return err
	})
	return conclude(o, now, err, out)
}

// within calls measure with the deadline of -limit. If that or ctx ended, the error is that cause and not its consequence.
func within(ctx context.Context, limit time.Duration, measure func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("-limit=%s is over", limit))
	defer cancel()
	err := measure(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// measure returns the results so far also with an error.
func measure(ctx context.Context, o *options, progress io.Writer) (*Results, error) {
	r := &Results{
		Date: time.Now().UTC().Truncate(time.Second), Machine: thisMachine(), Versions: versions(ctx),
		Sizes: map[string]size{}, Settings: o.settings,
	}
	dir, err := os.MkdirTemp("", "tdf-bench-")
	if err != nil {
		return r, fmt.Errorf("directory for the runs: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, d := range o.tables {
		b := &bench{options: o, size: o.given.or(d.size), dir: dir, progress: progress, results: r}
		b.say("%s", d.name)
		tables, err := d.measure(b, ctx)
		r.Sizes[d.name] = b.size
		r.Tables = append(r.Tables, tables...)
		if err != nil {
			return r, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return r, nil
}

// conclude writes the results. It returns an error if measuring failed, or if a ratio got worse.
func conclude(o *options, now *Results, failed error, out io.Writer) error {
	if failed != nil && len(now.Tables) == 0 {
		return failed
	}
	text := now.markdown()
	if _, err := io.WriteString(out, text); err != nil || failed != nil {
		return errors.Join(failed, err)
	}
	if o.markdown != "" {
		if err := os.WriteFile(o.markdown, []byte(text), 0o600); err != nil {
			return err
		}
	}
	if o.json != "" {
		if err := now.write(o.json); err != nil {
			return err
		}
	}
	if o.before == nil {
		return nil
	}
	report, err := compare(o.before, now, o.tolerance, o.latencyTolerance)
	_, writeErr := io.WriteString(out, report)
	return errors.Join(err, writeErr)
}
