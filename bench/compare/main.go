// Command compare measures TDF beside its peers: no-op programs beside xargs, GNU parallel and loops in C and Go; no-op Go
// handlers, opening and latency beside asynq, BullMQ and Celery. Each run has a private redis-server, all contenders run
// once a round, and the ratios of TDF to its peers are computed round by round. It writes Markdown and JSON; with -check it
// compares the ratios with those of an earlier JSON file. bench/README.md says how to read the tables.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// errWorse means that a ratio is worse than it was.
var errWorse = errors.New("worse than before")

// compare says of each ratio of before how it is now; it is an error if one is worse by more than the tolerance, or if
// there was nothing to compare.
func compare(before, now *Results, tolerance, latencyTolerance float64) (report string, err error) {
	var w strings.Builder
	fmt.Fprintf(&w, "\n## Ratios beside those of %s\n\n| table | TDF | of | metric | before | now | |\n|---|---|---|---|--:|--:|---|\n",
		before.Date.Format("2 January 2006"))
	var errs []error
	compared := 0
	for _, t := range before.Tables {
		for _, old := range t.Ratios {
			found, there := now.find(t.Name, old)
			if !there || !old.measured() {
				fmt.Fprintf(&w, "| %s | %s | %s | %s | | | not compared: not measured both times |\n", t.Name, old.Row, old.Of, t.title(old.Metric))
				continue
			}
			compared++
			most := tolerance
			if old.Less {
				most = latencyTolerance
			}
			words, err := judge(t.Name, old, found, most)
			errs = append(errs, err)
			fmt.Fprintf(&w, "| %s | %s | %s | %s | %s | %s | %s |\n",
				t.Name, old.Row, old.Of, t.title(old.Metric), short(old.Median), short(found.Median), words)
		}
	}
	if compared == 0 {
		errs = append(errs, errors.New("no ratio of before was measured now"))
	}
	return w.String(), errors.Join(errs...)
}

// find looks for the same ratio.
func (r *Results) find(table string, x Ratio) (Ratio, bool) {
	for _, t := range r.Tables {
		for _, y := range t.Ratios {
			if t.Name == table && y.Row == x.Row && y.Of == x.Of && y.Metric == x.Metric && y.measured() {
				return y, true
			}
		}
	}
	return Ratio{}, false
}

// judge says by which part a ratio is better or worse.
func judge(table string, old, now Ratio, tolerance float64) (words string, err error) {
	better := now.Median/old.Median - 1
	if old.Less {
		better = old.Median/now.Median - 1
	}
	percent := fmt.Sprintf("%.0f %%", 100*max(better, -better))
	switch {
	case better >= 0:
		return percent + " better", nil
	case -better <= tolerance:
		return percent + " worse, which is within the tolerance", nil
	}
	return "**" + percent + " worse**", fmt.Errorf("%w: table %s, %s in %s, %s: %s, was %s: %s, and the tolerance is %.0f %%",
		errWorse, table, now.Row, now.Of, now.Metric, short(now.Median), short(old.Median), percent, 100*tolerance)
}

// sizes are what a later check repeats.
type sizes struct {
	Tables []string `json:"tables"`
	Rounds int      `json:"rounds"`
	// Slots is how many programs run at a time, Programs how many each contender runs in a round.
	Slots    int `json:"slots"`
	Programs int `json:"programs"`
	// Handlers is how many tasks go through handlers in a round.
	Handlers int `json:"handlers"`
	// Rate is how many tasks a second are opened while latency is measured, Latencies how many in a round.
	Rate      int `json:"rate"`
	Latencies int `json:"latencies"`
	// Workers and WorkerSlots are TDF's with handlers.
	Workers     int `json:"workers"`
	WorkerSlots int `json:"worker_slots"`
	// Settings are those of TDF that differ from the defaults.
	Settings []string `json:"settings,omitempty"`
}

// options say what to measure and where the results go.
type options struct {
	sizes
	contenders                  []string // empty: all
	markdown, json, check       string
	tolerance, latencyTolerance float64
	limit, runLimit             time.Duration
	bin, peers, cache           string
}

// The names of tables.
const (
	programsTable = "programs"
	handlersTable = "handlers"
	openingTable  = "opening"
	latencyTable  = "latency"
)

func tableNames() []string { return []string{programsTable, handlersTable, openingTable, latencyTable} }

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	tables := list{values: tableNames()}
	var contenders, settings list
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.Var(&tables, "tables", "which tables")
	flags.Var(&contenders, "contenders", "only those whose names begin with one of these, as in TDF,xargs,asynq (default all)")
	flags.IntVar(&o.Rounds, "rounds", 5, "interleaved runs of each contender")
	flags.IntVar(&o.Slots, "slots", 2, "programs at a time")
	flags.IntVar(&o.Programs, "programs", 2000, "programs a run")
	flags.IntVar(&o.Handlers, "handlers", 20_000, "tasks a run through handlers")
	flags.IntVar(&o.Rate, "rate", 200, "tasks a second while latency is measured")
	flags.IntVar(&o.Latencies, "latencies", 1000, "tasks a run while latency is measured")
	flags.IntVar(&o.Workers, "workers", 1, "TDF's workers with handlers")
	flags.IntVar(&o.WorkerSlots, "worker-slots", 50, "slots of each of those")
	flags.Var(&settings, "set", "settings of TDF's programs and manager, as in worker.keep_rounds=1,manager.batch_size=500")
	flags.StringVar(&o.markdown, "markdown", "", "write the tables into this file too")
	flags.StringVar(&o.json, "json", "", "write all measured into this file")
	flags.StringVar(&o.check, "check", "", "compare ratios with those of this JSON file, and repeat its tables and sizes")
	flags.Float64Var(&o.tolerance, "tolerance", 0.15, "by which part a ratio may be worse than in -check")
	flags.Float64Var(&o.latencyTolerance, "latency-tolerance", 0.5, "the same for ratios of latencies")
	flags.DurationVar(&o.limit, "limit", time.Hour, "when to give up")
	flags.DurationVar(&o.runLimit, "run-limit", 2*time.Minute, "how long one run of one contender may take")
	flags.StringVar(&o.bin, "bin", "bin", "directory of tdf-server and tdf-worker")
	flags.StringVar(&o.peers, "peers", "bench/peers", "directory of the peers' programs")
	flags.StringVar(&o.cache, "cache", "bin/peers", "where scripts/setup-bench.sh has put peers")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.Tables, o.contenders, o.Settings = tables.values, contenders.values, settings.values
	if err := o.validate(); err != nil {
		return o, err
	}
	return o, o.absolute()
}

func (o *options) validate() error {
	err := frame.AtLeastOne(map[string]int{
		"rounds": o.Rounds, "slots": o.Slots, "programs": o.Programs, "handlers": o.Handlers, "rate": o.Rate,
		"latencies": o.Latencies, "workers": o.Workers, "worker-slots": o.WorkerSlots,
	})
	if err != nil {
		return err
	}
	for _, name := range o.Tables {
		if !slices.Contains(tableNames(), name) {
			return fmt.Errorf("-tables=%s: use some of %s", strings.Join(o.Tables, ","), strings.Join(tableNames(), ","))
		}
	}
	if worst := min(o.tolerance, o.latencyTolerance); worst < 0 {
		return fmt.Errorf("a tolerance of %g: must not be negative", worst)
	}
	return nil
}

// absolute makes directories independent of the one a contender runs in.
func (o *options) absolute() error {
	for _, dir := range []*string{&o.bin, &o.peers, &o.cache} {
		var err error
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	return nil
}

// like takes the sizes of earlier results, all but the number of rounds: ratios of other sizes are other ratios.
func (o *options) like(before *Results) error {
	rounds := o.Rounds
	o.sizes = before.Sizes
	o.Rounds = rounds
	return o.validate()
}

func (o *options) wants(tables ...string) bool {
	return slices.ContainsFunc(tables, func(t string) bool { return slices.Contains(o.Tables, t) })
}

// mayWant reports whether a contender may be selected whose name begins like this.
func (o *options) mayWant(name string) bool {
	return len(o.contenders) == 0 || slices.ContainsFunc(o.contenders, func(word string) bool {
		return strings.HasPrefix(name, word) || strings.HasPrefix(word, name)
	})
}

// list is a flag of words with commas between them.
type list struct{ values []string }

// String is the flag's value.
func (l *list) String() string { return strings.Join(l.values, ",") }

// Set takes the words.
func (l *list) Set(text string) error {
	l.values = strings.Split(text, ",")
	return nil
}
