package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/bench/frame"
)

// options say what to measure.
type options struct {
	conf                                             string
	workers, slots, servers, managers, queues, tasks int
	work                                             []time.Duration
	delay, settle, watch, limit                      time.Duration
	aof                                              bool
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	var work string
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.conf, "conf", "configs/redis.conf", "the redis.conf")
	flags.BoolVar(&o.aof, "aof", false, "keep the append-only file that it asks for")
	flags.IntVar(&o.workers, "workers", 1000, "workers")
	flags.IntVar(&o.slots, "slots", 1, "slots of a worker")
	flags.IntVar(&o.servers, "servers", 1, "servers")
	flags.IntVar(&o.managers, "managers", 1, "managers that archive")
	flags.IntVar(&o.queues, "queues", 4, "queues, each with as many tasks")
	flags.IntVar(&o.tasks, "tasks", 20_000, "tasks of each row")
	flags.StringVar(&work, "work", "0s,500ms", "how long a task takes, on average (half as long to half as long again); a row for each")
	flags.DurationVar(&o.delay, "delay", 0, "how long what a worker sends, and what it is answered, is under way")
	flags.DurationVar(&o.settle, "settle", 40*time.Second, "how long to wait until the idle fleet has come to rest")
	flags.DurationVar(&o.watch, "watch", 20*time.Second, "how long to watch it then")
	flags.DurationVar(&o.limit, "limit", 30*time.Minute, "when to give up")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for text := range strings.SplitSeq(work, ",") {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return o, fmt.Errorf("-work=%s: %q is no time: write 500ms or 0s,1s", work, text)
		}
		o.work = append(o.work, d)
	}
	return o, o.check()
}

func (o *options) check() error {
	err := frame.AtLeastOne(map[string]int{
		"workers": o.workers, "slots": o.slots, "servers": o.servers, "managers": o.managers, "queues": o.queues, "tasks": o.tasks,
	})
	if err != nil {
		return err
	}
	if o.delay < 0 || o.watch <= 0 {
		return fmt.Errorf("-delay=%s -watch=%s: must not be negative, and -watch not 0", o.delay, o.watch)
	}
	return nil
}

// How many connections there may be: a worker's pool and what it has beside that, and those of all others.
const (
	workerPool  = 4
	workerFiles = workerPool + 5
	otherFiles  = 500
)

// connections is how many Redis must bear.
func (o *options) connections() uint64 { return uint64(o.workers*workerFiles + otherFiles) }

// files is how many this process needs: a connection that is passed on with a delay has three ends here.
func (o *options) files() uint64 {
	if o.delay > 0 {
		return 3 * o.connections()
	}
	return o.connections()
}

// raiseFiles makes room for so many files here, and by inheritance in Redis.
func raiseFiles(need uint64) error {
	var have unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &have); err != nil {
		return fmt.Errorf("reading the limit of open files: %w", err)
	}
	if have.Cur >= need {
		return nil
	}
	want := unix.Rlimit{Cur: need, Max: max(have.Max, need)}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &want); err != nil {
		return fmt.Errorf("%d open files are needed, %d allowed (%w): raise ulimit -n, or take fewer -workers", need, have.Max, err)
	}
	return nil
}
