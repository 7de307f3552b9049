package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// flow lets many tasks flow through one Redis while their servers keep few of them (archive_retention), and watches what Redis
// needs for it. A manager opens tasks so that some always wait, a worker with a Go handler runs them, another manager archives
// them, and a server removes what is beyond the retention. At the end every id that was opened is looked for, as
// `tdf-manager verify` does.
func (b *bench) flow(ctx context.Context) ([]Table, error) {
	f := &flowRun{bench: b, result: result{
		Asked: b.Tasks, Failing: b.failing, Keep: b.keep, Kinds: map[string]*kind{}, Spans: map[string]figureSpan{},
	}}
	err := site.With(ctx, func(s *site.Site) error {
		f.site = s
		return s.Run(ctx, f.run)
	}, b.conf, "--appendonly", cmp.Or(b.aof, "yes"))
	if err != nil {
		return nil, err
	}
	f.sumUp()
	return []Table{{Name: "flow", Title: f.headline(), Text: f.markdown(), Figures: &f.result}}, f.check(b.strict)
}

// flowRun is one run.
type flowRun struct {
	*bench
	result
	site   *site.Site
	opener *manager.Manager
	began  time.Time
	ran    atomic.Int64 // calls of the handler
}

// flowing is the name of the handler.
const flowing = "flow"

// run starts the daemons, opens tasks and lets all of them end.
func (f *flowRun) run(ctx context.Context, c *site.Crew) (err error) {
	if f.opener, err = f.site.Manager(ctx, "opener", "manager.batch_size="+strconv.Itoa(f.batch)); err != nil {
		return err
	}
	err = errors.Join(
		c.Server("server", server.Settings{ArchiveRetention: f.retention(), ArchiveDir: f.archive}),
		c.Worker(site.Hand{Name: "worker", Slots: f.Slots, Handlers: map[string]worker.Handler{flowing: f.handle}}),
		c.Archiver("manager"),
	)
	if err != nil {
		return err
	}
	f.began = time.Now()
	if err := f.open(ctx); err != nil {
		return err
	}
	return f.finish(ctx)
}

// fails is the input of a task that shall fail.
const fails = "fail"

var errAsked = errors.New("it was asked to fail")

func (f *flowRun) handle(_ context.Context, j *worker.Job) error {
	f.ran.Add(1)
	if j.Task.Input == fails {
		return errAsked
	}
	_, err := io.WriteString(j.Stdout(), "done\n")
	return err
}

// open opens tasks so that enough wait, and looks at Redis from time to time.
func (f *flowRun) open(ctx context.Context) error {
	next := int64(f.every)
	for f.Opened < f.Tasks && time.Since(f.began) < f.opening {
		c, err := f.site.Store.Census(ctx)
		if err != nil {
			return err
		}
		if archived(c) >= next {
			if err := f.look(ctx); err != nil {
				return err
			}
			next += int64(f.every)
		}
		if c.Listed[statemachine.Open] >= int64(f.backlog) {
			timing.Pause(ctx, pollEvery)
			continue
		}
		opened, err := f.opener.SubmitAll(ctx, f.specs(min(f.batch, f.Tasks-f.Opened)))
		f.Opened += len(opened)
		if err != nil {
			return err
		}
	}
	return nil
}

// archived is how many tasks are, or were.
func archived(c upkeep.Census) int64 { return c.Listed[statemachine.Archived] + c.Purged }

func (f *flowRun) specs(n int) iter.Seq[task.Spec] {
	return func(yield func(task.Spec) bool) {
		for i := range n {
			spec := task.Spec{
				Program: flowing, Source: "rsync:/flow", Input: "task " + strconv.Itoa(f.Opened+i), Retry: task.Retry{Limit: task.AtMost(0)},
			}
			if (f.Opened+i)%f.failing == 0 {
				spec.Input = fails
			}
			if !yield(spec) {
				return
			}
		}
	}
}

// finish waits until all tasks are archived, and those have left Redis that are to: nothing changes any more. Then it accounts for each.
func (f *flowRun) finish(ctx context.Context) (err error) {
	if err := f.survey(ctx, atEnd); err != nil {
		return err
	}
	if err := f.await(ctx, func(c upkeep.Census) bool { return archived(c) == int64(f.Opened) }); err != nil {
		return err
	}
	if f.Ended, err = f.sample(ctx); err != nil {
		return err
	}
	err = f.await(ctx, func(c upkeep.Census) bool {
		f.Purged = c.Purged
		f.Kept, err = f.site.Card(ctx, "archived:"+string(statemachine.Succeeded))
		return err != nil || f.Kept <= int64(f.keep) && c.Listed[statemachine.Archived] == f.Kept
	})
	if err != nil {
		return err
	}
	if f.Ranges, err = f.site.Card(ctx, "purged_ids"); err != nil {
		return err
	}
	report, err := audit.Verify(ctx, f.site.Store)
	if err == nil && f.archive != "" {
		err = audit.VerifyArchive(ctx, f.site.Store, &report, []string{f.archive})
	}
	f.Account, f.States, f.Violations, f.Archive = report.Account, report.States, report.Violations, report.Archive
	return err
}

func (f *flowRun) await(ctx context.Context, so func(upkeep.Census) bool) error {
	return site.Await(ctx, pollEvery, func() (bool, error) {
		c, err := f.site.Store.Census(ctx)
		return err == nil && so(c), err
	})
}

// retention is what the server keeps of tasks, by number and by age.
func (f *flowRun) retention() []upkeep.Retention {
	return []upkeep.Retention{
		{Outcome: statemachine.Succeeded, Most: int64(f.keep)},
		{Outcome: statemachine.Failed, Age: f.age, Most: -1},
	}
}
