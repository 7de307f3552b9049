package main

import (
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/bench/frame"
)

// options say what to measure and where.
type options struct {
	tasks, rounds, parallel int
	waiting                 int // tasks that fit nobody, in the table of claims
	table                   string
	layers                  []string // containments of TDF in the table of systems
	strict                  bool
	redis                   string // host:port of a Redis that may be written to; empty: a private one is started
	peers                   string // directory of the nested module
	bin                     string // directory of TDF's built programs
}

// The values of -table.
const (
	allTables        = "all"
	systemsTable     = "systems"
	containmentTable = "containment"
	claimsTable      = "claims" // not among all: it fills the memory of Redis for a minute
)

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	var containment string
	flags := flag.NewFlagSet("quick", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.IntVar(&o.tasks, "tasks", 1000, "tasks a run")
	flags.IntVar(&o.rounds, "rounds", 5, "interleaved runs of each contender")
	flags.IntVar(&o.parallel, "parallel", runtime.NumCPU(), "tasks at a time")
	flags.IntVar(&o.waiting, "waiting", 1_000_000, "tasks that fit nobody, in the table of claims")
	flags.StringVar(&o.table, "table", allTables, "what to compare: systems, containment, both (all), or claims")
	flags.StringVar(&containment, "containment", "auto", "containments of TDF among the systems, as in auto,group,cgroup,pidns")
	flags.BoolVar(&o.strict, "strict", false, fmt.Sprintf("fail if a layer of containment is below %.1f of xargs", floor))
	flags.StringVar(&o.redis, "redis", "", "host:port of a Redis that nobody else uses (default: start a private redis-server)")
	flags.StringVar(&o.peers, "peers", "bench/peers", "directory of the peers' module")
	flags.StringVar(&o.bin, "bin", "bin", "directory of tdf-server and tdf-worker")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.layers = strings.Split(containment, ",")
	return o, o.check()
}

func (o *options) check() error {
	err := frame.AtLeastOne(map[string]int{"tasks": o.tasks, "rounds": o.rounds, "parallel": o.parallel, "waiting": o.waiting})
	if err != nil {
		return err
	}
	if known := []string{allTables, systemsTable, containmentTable, claimsTable}; !slices.Contains(known, o.table) {
		return fmt.Errorf("-table=%s: use one of %s", o.table, strings.Join(known, ", "))
	}
	known := []string{"auto"}
	for _, layer := range layers() {
		known = append(known, string(layer))
	}
	for _, layer := range o.layers {
		if !slices.Contains(known, layer) {
			return fmt.Errorf("-containment=%s: use some of %s", strings.Join(o.layers, ","), strings.Join(known, ","))
		}
	}
	return nil
}

// size is the headline of a table.
func (o *options) size() string {
	return fmt.Sprintf("%d tasks, %d at a time, %d interleaved rounds", o.tasks, o.parallel, o.rounds)
}
