package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/tdf-go/tdf/bench/frame"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/statemachine"
)

// options say what to measure.
type options struct {
	conf, json, archive                                string
	tasks, backlog, keep, failing, batch, slots, every int
	age, opening, limit                                time.Duration
	aof, strict                                        bool
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("flow", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.conf, "conf", "configs/redis.conf", "the redis.conf")
	flags.BoolVar(&o.aof, "aof", true, "keep the append-only file that it asks for")
	flags.IntVar(&o.tasks, "tasks", 2_000_000, "tasks")
	flags.DurationVar(&o.opening, "opening", 40*time.Minute, "for how long to open tasks at most: then it ends in order, with fewer")
	flags.IntVar(&o.backlog, "backlog", 5000, "tasks that wait, about")
	flags.IntVar(&o.failing, "failing", 200, "one task of so many fails")
	flags.IntVar(&o.keep, "keep", 50_000, "archive_retention of tasks that succeeded: how many stay")
	flags.DurationVar(&o.age, "age", 30*time.Second, "archive_retention of tasks that failed: how long they stay")
	flags.StringVar(&o.archive, "archive", "", "archive_dir: an empty directory to which tasks go when they leave Redis (default: nowhere)")
	flags.IntVar(&o.batch, "batch", 1000, "[manager] batch_size of the one that opens")
	flags.IntVar(&o.slots, "slots", 16, "slots of the worker")
	flags.IntVar(&o.every, "every", 10_000, "after how many tasks to look at Redis")
	flags.StringVar(&o.json, "json", "", "write the figures to this file too")
	flags.BoolVar(&o.strict, "strict", false, "fail if memory was not flat")
	flags.DurationVar(&o.limit, "limit", time.Hour, "when to give up")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	return o, o.check()
}

func (o *options) check() error {
	err := frame.AtLeastOne(map[string]int{
		"tasks": o.tasks, "backlog": o.backlog, "failing": o.failing, "keep": o.keep, "batch": o.batch, "slots": o.slots, "every": o.every,
	})
	if err != nil {
		return err
	}
	if o.age <= 0 || o.opening <= 0 {
		return fmt.Errorf("-age=%s -opening=%s: must be above 0", o.age, o.opening)
	}
	return nil
}

// set are the options of the server.
func (o *options) set(s *server.Options) { s.Retention, s.ArchiveDir = o.retention(), o.archive }

// retention is archive_retention, by number and by age.
func (o *options) retention() []store.Retention {
	return []store.Retention{
		{Outcome: statemachine.Succeeded, Most: int64(o.keep)},
		{Outcome: statemachine.Failed, Age: o.age, Most: -1},
	}
}
