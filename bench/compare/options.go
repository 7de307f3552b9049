package main

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/frame"
)

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
