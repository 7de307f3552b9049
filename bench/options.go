package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// size is the size of a measurement; a later check repeats all but the rounds. Fields that a table does not use are 0.
type size struct {
	Tasks   int `json:"tasks,omitempty"`
	Rounds  int `json:"rounds,omitempty"`
	Workers int `json:"workers,omitempty"`
	// Slots are those of a worker, or programs at a time.
	Slots int `json:"slots,omitempty"`
	// Rate is how many tasks a second are opened while latency is measured.
	Rate int `json:"rate,omitempty"`
}

// or fills the zero fields of s from other.
func (s size) or(other size) size {
	return size{
		cmp.Or(s.Tasks, other.Tasks), cmp.Or(s.Rounds, other.Rounds), cmp.Or(s.Workers, other.Workers), cmp.Or(s.Slots, other.Slots),
		cmp.Or(s.Rate, other.Rate),
	}
}

// options select what to measure and where to write the results. Their help names the tables they belong to.
type options struct {
	tables                      []definition
	given                       size // by flags
	contenders                  []string
	settings                    []string
	markdown, json, check       string
	before                      *Results // those of -check
	tolerance, latencyTolerance float64
	limit, runLimit             time.Duration
	strict                      bool
	bin, peers, cache           string

	containments                          []string
	servers, managers                     int
	conf, aof                             string
	fill, few, many, layer, needs, queues int
	backlog, keep, failing, batch, every  int
	work                                  []time.Duration
	delay, settle, watch                  time.Duration
	age, opening                          time.Duration
	archive                               string
}

func parse(args []string, usage io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.Usage = func() {
		fmt.Fprint(usage, "bench TABLE... [OPTION]...\n\nTables:\n")
		for _, d := range definitions() {
			fmt.Fprintf(usage, "  %-12s %s\n", d.name, d.about)
		}
		fmt.Fprint(usage, "\nOptions:\n")
		flags.PrintDefaults()
	}
	o.shared(flags)
	o.special(flags)
	var names []string
	for len(args) > 0 { // names and flags in any order
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if args = flags.Args(); len(args) > 0 {
			names, args = append(names, args[0]), args[1:]
		}
	}
	if len(names) == 0 && o.check == "" {
		flags.Usage()
		return nil, flag.ErrHelp
	}
	if err := o.choose(names); err != nil {
		return nil, err
	}
	return o, errors.Join(positive(flags), o.validate(), o.absolute())
}

// shared are the options of more than one table.
func (o *options) shared(flags *flag.FlagSet) {
	flags.IntVar(&o.given.Tasks, "tasks", 0, "`tasks` of a run (default: each table has its own, as of rounds, workers, slots and rate)")
	flags.IntVar(&o.given.Rounds, "rounds", 0, "interleaved `rounds`")
	flags.IntVar(&o.given.Workers, "workers", 0, "TDF's `workers`")
	flags.IntVar(&o.given.Slots, "slots", 0, "`slots` of a worker; programs, containment: programs at a time")
	flags.IntVar(&o.given.Rate, "rate", 0, "latency: `tasks` opened a second")
	flags.Func("contenders", "only those whose `names` begin with one of these, as in TDF,xargs,asynq (default all)", words(&o.contenders))
	flags.Func("set", "programs, handlers, latency: `settings` of TDF, as in worker.keep_rounds=1,manager.batch_size=500", words(&o.settings))
	flags.StringVar(&o.markdown, "markdown", "", "write the tables into this `file` too")
	flags.StringVar(&o.json, "json", "", "write all figures into this `file`")
	flags.StringVar(&o.check, "check", "", "compare ratios with those of this JSON `file`, and repeat its tables and sizes")
	flags.Float64Var(&o.tolerance, "tolerance", 0.15, "how much worse than in -check a ratio may be, as a fraction")
	flags.Float64Var(&o.latencyTolerance, "latency-tolerance", 0.5, "the same for ratios of latencies")
	flags.BoolVar(&o.strict, "strict", false, "fail if a target is not reached")
	flags.DurationVar(&o.limit, "limit", time.Hour, "when to give up")
	flags.DurationVar(&o.runLimit, "run-limit", 2*time.Minute, "how long one run of one contender may take")
	flags.StringVar(&o.bin, "bin", "bin", "`directory` of tdf-server, tdf-worker and tdf-manager")
	flags.StringVar(&o.peers, "peers", "bench/peers", "`directory` of the peers' programs")
	flags.StringVar(&o.cache, "cache", "bin/peers", "`directory` where scripts/setup-bench.sh has put peers")
	flags.StringVar(&o.conf, "conf", "configs/redis.conf", "the redis.conf of memory, scale, quiet, fleet and flow")
	flags.StringVar(&o.aof, "aof", "", "`yes or no`: whether Redis keeps an append-only file (default no for fleet, yes for flow)")
	flags.IntVar(&o.servers, "servers", 1, "plans, fleet: `servers`")
	flags.IntVar(&o.many, "many", 1_000_000, "claims, scale, quiet: how many `tasks` wait in the large case")
	flags.IntVar(&o.few, "few", 10_000, "scale, quiet: how many `tasks` wait in the small case")
	flags.DurationVar(&o.settle, "settle", 40*time.Second, "quiet, fleet: how long to wait for the daemons to settle")
	flags.DurationVar(&o.watch, "watch", 30*time.Second, "quiet, fleet: how long to watch them after that")
}

// special are the options of one table.
func (o *options) special(flags *flag.FlagSet) {
	o.containments = []string{"group", "auto"}
	flags.Func("containments", "programs: `containments` of TDF, of auto,group,cgroup,pidns (default group,auto)", words(&o.containments))
	flags.IntVar(&o.fill, "fill", 12_000, "memory: `tasks` opened before the measurement, so that the stream of events has its full length")
	flags.IntVar(&o.layer, "layer", 1000, "plans: `tasks` of a layer")
	flags.IntVar(&o.needs, "needs", 10, "plans: how many `tasks` of the layer before each task needs")
	flags.IntVar(&o.managers, "managers", 1, "fleet: `managers` that archive")
	flags.IntVar(&o.queues, "queues", 4, "fleet: `queues`, each with as many tasks")
	o.work = []time.Duration{0, 500 * time.Millisecond}
	flags.Func("work", "fleet: how long a task takes on average (half to one and a half of it); a row for each of `0s,500ms`", o.setWork)
	flags.DurationVar(&o.delay, "delay", 0, "fleet: the delay of each message between a worker and Redis, each way")
	flags.IntVar(&o.backlog, "backlog", 5000, "flow: about how many `tasks` wait")
	flags.IntVar(&o.failing, "failing", 200, "flow: one of this `many` tasks fails")
	flags.IntVar(&o.keep, "keep", 50_000, "flow: how `many` succeeded tasks archive_retention keeps")
	flags.DurationVar(&o.age, "age", 30*time.Second, "flow: how long archive_retention keeps failed tasks")
	flags.StringVar(&o.archive, "archive", "", "flow: archive_dir, an empty `directory` for tasks that leave Redis (default none)")
	flags.IntVar(&o.batch, "batch", 1000, "flow: [manager] batch_size of the one that opens")
	flags.IntVar(&o.every, "every", 10_000, "flow: take a sample after this many `tasks`")
	flags.DurationVar(&o.opening, "opening", 40*time.Minute, "flow: stop opening tasks after this time, and measure fewer")
}

// choose selects the named tables, and for a check the tables and sizes of the earlier run, because ratios depend on the size.
func (o *options) choose(names []string) (err error) {
	if o.check != "" {
		if o.before, err = readResults(o.check); err != nil {
			return err
		}
	}
	for _, d := range definitions() {
		wanted := slices.Contains(names, d.name)
		if o.before != nil {
			was, there := o.before.Sizes[d.name]
			wanted = wanted || there && len(names) == 0
			was.Rounds = 0
			d.size = was.or(d.size)
		}
		if wanted {
			o.tables = append(o.tables, d)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(o.tables, func(d definition) bool { return d.name == name }) {
			return fmt.Errorf("no table %q: bench -help lists them", name)
		}
	}
	return nil
}

func (o *options) validate() error {
	for _, word := range o.contenders {
		if !slices.ContainsFunc(contenderNames, func(name string) bool { return fits(name, word) }) {
			return fmt.Errorf("-contenders: no contender has a name that begins with %q: there are %s", word, strings.Join(contenderNames, "; "))
		}
	}
	known := []string{"auto"}
	for _, layer := range layers() {
		known = append(known, string(layer))
	}
	for _, layer := range o.containments {
		if !slices.Contains(known, layer) {
			return fmt.Errorf("-containments=%s: use some of %s", strings.Join(o.containments, ","), strings.Join(known, ","))
		}
	}
	switch {
	case o.tolerance < 0 || o.latencyTolerance < 0:
		return fmt.Errorf("-tolerance=%g -latency-tolerance=%g: must not be negative", o.tolerance, o.latencyTolerance)
	case o.needs > o.layer:
		return fmt.Errorf("-needs=%d: a layer has %d tasks", o.needs, o.layer)
	}
	return nil
}

// absolute makes directories independent of the one a contender runs in.
func (o *options) absolute() (err error) {
	for _, dir := range []*string{&o.bin, &o.peers, &o.cache} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) setWork(text string) error {
	o.work = nil
	for word := range strings.SplitSeq(text, ",") {
		d, err := time.ParseDuration(word)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is not a time: write 500ms or 0s,1s", word)
		}
		o.work = append(o.work, d)
	}
	return nil
}

// positive refuses numbers and times that make no sense.
func positive(flags *flag.FlagSet) (err error) {
	mayBeZero := []string{"settle", "delay"}
	flags.Visit(func(f *flag.Flag) {
		getter, ok := f.Value.(flag.Getter)
		if !ok {
			return
		}
		switch v := getter.Get().(type) {
		case int:
			if v < 1 {
				err = fmt.Errorf("-%s=%d: must be at least 1", f.Name, v)
			}
		case time.Duration:
			if v < 0 || v == 0 && !slices.Contains(mayBeZero, f.Name) {
				err = fmt.Errorf("-%s=%s: must be above 0", f.Name, v)
			}
		}
	})
	return err
}

// words is a flag of words with commas between them.
func words(into *[]string) func(string) error {
	return func(text string) error {
		*into = strings.Split(text, ",")
		return nil
	}
}
