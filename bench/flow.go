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
	f, err := b.startFlow(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.measure(), f.close()); err != nil {
		return nil, err
	}
	f.sumUp()
	return []Table{{Name: "flow", Title: f.headline(), Text: f.markdown(), Figures: &f.result}}, f.check(b.strict)
}

// flowing is the name of the handler.
const flowing = "flow"

// flowRun is one run.
type flowRun struct {
	*bench
	result
	site   *site.Site
	crew   *site.Crew
	opener *manager.Manager
	ctx    context.Context //nolint:containedctx // the life of the crew
	began  time.Time
	ran    atomic.Int64 // calls of the handler
}

// startFlow starts the daemons.
func (b *bench) startFlow(ctx context.Context) (*flowRun, error) {
	on, err := site.New(ctx, b.conf, "--appendonly", cmp.Or(b.aof, "yes"))
	if err != nil {
		return nil, err
	}
	f := &flowRun{bench: b, site: on, result: result{
		Asked: b.Tasks, Failing: b.failing, Keep: b.keep, Kinds: map[string]*kind{}, Spans: map[string]figureSpan{},
	}}
	f.ctx, f.crew = on.Gather(ctx)
	if err := f.start(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *flowRun) close() error {
	err := f.crew.Stop()
	if f.opener != nil {
		err = errors.Join(err, f.opener.Close())
	}
	return errors.Join(err, f.site.Close())
}

func (f *flowRun) start() (err error) {
	if f.opener, err = f.site.Manager(f.ctx, "opener", "manager.batch_size="+strconv.Itoa(f.batch)); err != nil {
		return err
	}
	return errors.Join(
		f.crew.Server("server", f.retain),
		f.crew.Worker(site.Hand{Name: "worker", Slots: f.Slots, Handlers: map[string]worker.Handler{flowing: f.handle}}),
		f.crew.Archiver("manager"),
	)
}

// fails is the input of a task that shall fail.
const fails = "fail"

var errAsked = errors.New("it was asked to fail")

func (f *flowRun) handle(_ context.Context, j *worker.Job) error {
	f.ran.Add(1)
	if j.Input == fails {
		return errAsked
	}
	_, err := io.WriteString(j.Stdout, "done\n")
	return err
}

// measure opens tasks so that enough wait, and looks at Redis from time to time; then it lets all of them end.
func (f *flowRun) measure() error {
	f.began = time.Now()
	next := int64(f.every)
	for f.Opened < f.Tasks && time.Since(f.began) < f.opening {
		c, err := f.site.Store.Census(f.ctx)
		if err != nil {
			return f.failed(err)
		}
		if archived(c) >= next {
			if err := f.look(); err != nil {
				return f.failed(err)
			}
			next += int64(f.every)
		}
		if c.Listed[statemachine.Open] < int64(f.backlog) {
			err = f.open(min(f.batch, f.Tasks-f.Opened))
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
func (f *flowRun) failed(err error) error {
	if f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	return err
}

// archived is how many tasks are, or were.
func archived(c upkeep.Census) int64 { return c.Listed[statemachine.Archived] + c.Purged }

func (f *flowRun) open(n int) error {
	ids, err := f.opener.OpenAll(f.ctx, f.specs(n))
	f.Opened += len(ids)
	return err
}

func (f *flowRun) specs(n int) iter.Seq[task.Spec] {
	return func(yield func(task.Spec) bool) {
		for i := range n {
			spec := task.Spec{Program: flowing, Source: "rsync:/flow", Input: "task " + strconv.Itoa(f.Opened+i), MaxFails: new(0)}
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
func (f *flowRun) finish() (err error) {
	if err := f.survey(atEnd); err != nil {
		return err
	}
	if err := f.await(func(c upkeep.Census) bool { return archived(c) == int64(f.Opened) }); err != nil {
		return err
	}
	if f.Ended, err = f.sample(); err != nil {
		return err
	}
	err = f.await(func(c upkeep.Census) bool {
		f.Kept, err = f.site.Card(f.ctx, "archived:"+string(statemachine.Succeeded))
		return err != nil || f.Kept <= int64(f.keep) && c.Listed[statemachine.Archived] == f.Kept
	})
	if err != nil {
		return err
	}
	if f.Ranges, err = f.site.Card(f.ctx, "purged_ids"); err != nil {
		return err
	}
	report, err := audit.Verify(f.ctx, f.site.Store)
	f.Account, f.States, f.Violations = report.Account, report.States, report.Violations
	if err != nil || f.archive == "" {
		return err
	}
	f.Archive, err = readCopies(f.ctx, f.archive, f.site.Store.Namespace())
	return err
}

func (f *flowRun) await(so func(upkeep.Census) bool) error {
	return site.Await(f.ctx, pollEvery, func() (bool, error) {
		c, err := f.site.Store.Census(f.ctx)
		return err == nil && so(c), err
	})
}

// retain sets archive_retention, by number and by age, and archive_dir.
func (f *flowRun) retain(s *server.Options) { s.Retention, s.ArchiveDir = f.retention(), f.archive }

func (f *flowRun) retention() []upkeep.Retention {
	return []upkeep.Retention{
		{Outcome: statemachine.Succeeded, Most: int64(f.keep)},
		{Outcome: statemachine.Failed, Age: f.age, Most: -1},
	}
}
