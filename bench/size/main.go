// Command size measures what waiting tasks cost: the memory of one, in Redis as configs/redis.conf sets it up and with Redis'
// defaults, beside ways to keep less; whether a task takes longer where many others wait; what a server and Redis
// do while nothing is due; and how often an idle worker asks Redis. Each part has redis-servers of its own. The tables are
// Markdown; bench/README.md says how to read them.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/frame"
)

func main() { frame.Main("size", run) }

// run measures the parts that were asked for and writes their tables to out and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	return frame.Within(ctx, o.limit, func(ctx context.Context) error { return o.parts(ctx, out, progress) })
}

func (o *options) parts(ctx context.Context, out, progress io.Writer) error {
	for _, part := range parts() {
		if !o.wants(part.name) {
			continue
		}
		_, _ = fmt.Fprintf(progress, "%s\n", part.name)
		table, err := part.measure(ctx, *o, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		if _, err := io.WriteString(out, table+"\n"); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	return nil
}

// part is one of the measurements.
type part struct {
	name    string
	measure func(context.Context, options, io.Writer) (string, error)
}

func parts() []part {
	return []part{{"memory", measureMemory}, {"forms", measureForms}, {"scale", measureScale}, {"quiet", measureQuiet}, {"idle", measureIdle}}
}

// options say what to measure.
type options struct {
	conf                                string
	only                                []string
	tasks, fill, few, many, slice       int
	rounds                              int
	slots, idlers                       int
	settle, watch, limit                time.Duration
	sourceBytes, inputBytes, outputSize int
}

func parse(args []string, usage io.Writer) (options, error) {
	o := options{sourceBytes: 80, inputBytes: 100, outputSize: 6}
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	var only string
	flags := flag.NewFlagSet("size", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.conf, "conf", "configs/redis.conf", "the redis.conf to measure beside the defaults of Redis")
	flags.StringVar(&only, "only", strings.Join(names, ","), "parts to measure")
	flags.IntVar(&o.tasks, "tasks", 50_000, "memory: tasks that wait, and are archived then")
	flags.IntVar(&o.fill, "fill", 12_000, "memory: tasks that are there before; so many that the stream of events is as long as it gets")
	flags.IntVar(&o.few, "few", 10_000, "scale, quiet: few tasks")
	flags.IntVar(&o.many, "many", 1_000_000, "scale, quiet: many tasks")
	flags.IntVar(&o.slice, "slice", 3000, "scale: tasks of a round")
	flags.IntVar(&o.rounds, "rounds", 15, "scale: rounds")
	flags.IntVar(&o.slots, "slots", 16, "scale: slots of the worker")
	flags.IntVar(&o.idlers, "idlers", 20, "idle: workers")
	flags.DurationVar(&o.settle, "settle", 40*time.Second, "quiet, idle: how long to wait until all have come to rest")
	flags.DurationVar(&o.watch, "watch", 30*time.Second, "quiet, idle: how long to watch them then")
	flags.DurationVar(&o.limit, "limit", time.Hour, "when to give up")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.only = strings.Split(only, ",")
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("-only=%s: no part %q: there are %s", only, name, strings.Join(names, ", "))
		}
	}
	return o, o.check()
}

func (o *options) wants(part string) bool { return slices.Contains(o.only, part) }

func (o *options) check() error {
	err := frame.AtLeastOne(map[string]int{
		"tasks": o.tasks, "fill": o.fill, "few": o.few, "many": o.many, "slice": o.slice,
		"rounds": o.rounds, "slots": o.slots, "idlers": o.idlers,
	})
	if err != nil {
		return err
	}
	if o.few > o.many {
		return fmt.Errorf("-few=%d: more than -many=%d", o.few, o.many)
	}
	if o.watch <= 0 {
		return fmt.Errorf("-watch=%s: must be above 0", o.watch)
	}
	return nil
}
