// Command flow lets many tasks flow through one Redis while their servers keep few of them (archive_retention), and watches what
// Redis needs for it. A manager opens tasks so that some always wait, a worker with a Go handler runs them, another manager
// archives them, and a server removes what is beyond the retention: the real code, on a private redis-server as configs/redis.conf
// sets it up. At the end every id that was opened is looked for, as `tdf-manager verify` does. The tables are Markdown;
// bench/README.md says how to read them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/bench/crew"
	"github.com/tdf-go/tdf/bench/frame"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

func main() { frame.Main("flow", run) }

// run measures, writes the tables to out and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	var r *result
	err = frame.Within(ctx, o.limit, func(ctx context.Context) error {
		f, err := gather(ctx, o, progress)
		if err != nil {
			return err
		}
		err = errors.Join(f.measure(), f.close())
		r = f.result()
		return err
	})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, r.markdown()); err != nil {
		return err
	}
	if o.json != "" {
		if err := frame.WriteJSON(o.json, r); err != nil {
			return err
		}
	}
	return r.check(o.strict)
}

const program = "flow"

// flow is one run.
type flow struct {
	o        options
	progress io.Writer
	site     *crew.Site
	crew     *crew.Crew
	opener   *manager.Manager
	ctx      context.Context //nolint:containedctx // the life of the crew
	began    time.Time
	opened   int          // tasks so far
	ran      atomic.Int64 // calls of the handler
	samples  []sample
	warm     int              // the first sample after the warm-up; that many if there is none
	kinds    map[string]*kind // what lay in Redis, see survey
	ended    sample           // when all tasks were archived
	// At the end: how many tasks that succeeded are left, how many ranges of ids have left Redis, what verify says.
	left, ranges int64
	report       audit.Report
	copies       *copies // nil without an archive
}

// gather starts the daemons.
func gather(ctx context.Context, o options, progress io.Writer) (*flow, error) {
	settings := []string{o.conf}
	if o.aof {
		settings = append(settings, "--appendonly", "yes")
	}
	site, err := crew.NewSite(ctx, settings...)
	if err != nil {
		return nil, err
	}
	f := &flow{o: o, progress: progress, site: site, kinds: map[string]*kind{}}
	f.ctx, f.crew = site.Gather(ctx)
	if err := f.start(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *flow) close() error {
	err := f.crew.Stop()
	if f.opener != nil {
		err = errors.Join(err, f.opener.Close())
	}
	return errors.Join(err, f.site.Close())
}

func (f *flow) start() (err error) {
	if f.opener, err = f.site.Manager(f.ctx, "opener", "manager.batch_size="+strconv.Itoa(f.o.batch)); err != nil {
		return err
	}
	return errors.Join(
		f.crew.Server("server", f.o.set),
		f.crew.Worker(crew.Hand{Name: "worker", Slots: f.o.slots, Handlers: map[string]worker.Handler{program: f.handle}}),
		f.crew.Archiver("manager"),
	)
}

// fails is the input of a task that shall fail.
const fails = "fail"

var errAsked = errors.New("it was asked to fail")

func (f *flow) handle(_ context.Context, j *worker.Job) error {
	f.ran.Add(1)
	if j.Input == fails {
		return errAsked
	}
	_, err := io.WriteString(j.Stdout, "done\n")
	return err
}

// pollEvery is how often the benchmark looks how many tasks wait.
const pollEvery = 20 * time.Millisecond

// measure opens tasks so that enough wait, and looks at Redis from time to time; then it lets all of them end.
func (f *flow) measure() error {
	f.began = time.Now()
	next := int64(f.o.every)
	for f.opened < f.o.tasks && time.Since(f.began) < f.o.opening {
		c, err := f.site.Store.Census(f.ctx)
		if err != nil {
			return f.failed(err)
		}
		if archived(c) >= next {
			if err := f.look(); err != nil {
				return f.failed(err)
			}
			next += int64(f.o.every)
		}
		if c.Listed[statemachine.Open] < int64(f.o.backlog) {
			err = f.open(min(f.o.batch, f.o.tasks-f.opened))
		} else {
			timing.Pause(f.ctx, pollEvery)
		}
		if err != nil || f.ctx.Err() != nil {
			return f.failed(err)
		}
	}
	return f.failed(f.finish())
}

// failed is why the run ends: of a daemon that has failed, that.
func (f *flow) failed(err error) error {
	if f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	return err
}

// archived is how many tasks are, or were.
func archived(c store.Census) int64 { return c.Listed[statemachine.Archived] + c.Purged }

func (f *flow) open(n int) error {
	ids, err := f.opener.OpenAll(f.ctx, f.specs(n))
	f.opened += len(ids)
	return err
}

func (f *flow) specs(n int) iter.Seq[task.Spec] {
	return func(yield func(task.Spec) bool) {
		for i := range n {
			spec := task.Spec{Program: program, Source: "rsync:/flow", Input: "task " + strconv.Itoa(f.opened+i), MaxFails: new(0)}
			if (f.opened+i)%f.o.failing == 0 {
				spec.Input = fails
			}
			if !yield(spec) {
				return
			}
		}
	}
}

// finish waits until all tasks are archived, and those have left Redis that are to: nothing changes any more. Then it accounts for each.
func (f *flow) finish() (err error) {
	if err := f.survey(atEnd); err != nil {
		return err
	}
	if err := f.await(func(c store.Census) bool { return archived(c) == int64(f.opened) }); err != nil {
		return err
	}
	if f.ended, err = f.sample(); err != nil {
		return err
	}
	err = f.await(func(c store.Census) bool {
		f.left, err = f.card("archived:" + string(statemachine.Succeeded))
		return err != nil || f.left <= int64(f.o.keep) && c.Listed[statemachine.Archived] == f.left
	})
	if err != nil {
		return err
	}
	if f.ranges, err = f.card("purged_ids"); err != nil {
		return err
	}
	if f.report, err = audit.Verify(f.ctx, f.site.Store); err != nil || f.o.archive == "" {
		return err
	}
	f.copies, err = readCopies(f.ctx, f.o.archive, f.site.Store.Namespace())
	return err
}

// card is the size of a sorted set.
func (f *flow) card(key string) (int64, error) {
	return f.site.Redis.DB.ZCard(f.ctx, f.site.Key(key)).Result()
}

func (f *flow) await(so func(store.Census) bool) error {
	for timing.Pause(f.ctx, pollEvery) {
		c, err := f.site.Store.Census(f.ctx)
		if err != nil || so(c) {
			return err
		}
	}
	return fmt.Errorf("%d tasks opened: %w", f.opened, context.Cause(f.ctx))
}

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
