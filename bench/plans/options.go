package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/tdf-go/tdf/bench/frame"
)

// options say what to measure.
type options struct {
	graph
	slices, servers, workers, slots int
	limit, pauses                   time.Duration
	strict, profile                 bool
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("plans", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.IntVar(&o.tasks, "tasks", 100_000, "tasks of the plan, and tasks that need nothing beside it")
	flags.IntVar(&o.layer, "layer", 1000, "tasks of a layer")
	flags.IntVar(&o.needs, "needs", 10, "how many tasks of the layer before each task needs")
	flags.IntVar(&o.slices, "slices", 20, "parts in which both kinds of tasks run in turn")
	flags.IntVar(&o.servers, "servers", 1, "servers")
	flags.IntVar(&o.workers, "workers", 2, "workers")
	flags.IntVar(&o.slots, "slots", 8, "slots of a worker")
	flags.DurationVar(&o.limit, "limit", 30*time.Minute, "when to give up")
	flags.DurationVar(&o.pauses, "pauses", 30*time.Second, "how long to look for pauses of the machine, before and after")
	flags.BoolVar(&o.strict, "strict", false, fmt.Sprintf(
		"fail if a task of the plan takes more than %d times one that needs nothing, or its scripts more often more than %s "+
			"than the machine explains", mostRatio, longestScript))
	flags.BoolVar(&o.profile, "profile", false, "show what each script took in all; noting every call makes Redis slower")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	return o, o.check()
}

// slowFrom is from which time on calls are noted.
func (o *options) slowFrom() time.Duration {
	if o.profile {
		return 0
	}
	return slowFrom
}

func (o *options) check() error {
	err := frame.AtLeastOne(map[string]int{
		"tasks": o.tasks, "layer": o.layer, "needs": o.needs, "slices": o.slices, "servers": o.servers, "workers": o.workers, "slots": o.slots,
	})
	if err != nil {
		return err
	}
	if o.needs > o.layer {
		return fmt.Errorf("-needs=%d: a layer has %d tasks", o.needs, o.layer)
	}
	return nil
}
