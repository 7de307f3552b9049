package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// Runner opens what is due. Any number of them may run in a namespace; each server has one.
type Runner struct {
	m   *manager.Manager
	log *slog.Logger

	mu sync.Mutex
	// begun is which occurrence of a series was begun here last, and in which epoch: it begins again if Redis has lost it.
	begun map[string]begun
}

type begun struct{ number, epoch int64 }

// Options say how a Runner works. The zero value has the defaults.
type Options struct {
	// Logger gets the log. Default: slog.Default.
	Logger *slog.Logger
}

// NewRunner makes a Runner that works on a manager.
func NewRunner(m *manager.Manager, o Options) *Runner {
	return &Runner{m: m, log: cmp.Or(o.Logger, slog.Default()), begun: map[string]begun{}}
}

const (
	// page is how many series are read in one call, writers how many are written at a time.
	page, writers = 200, 8
	// idlePoll is the longest time between two looks, poll the one while there are any series: their tasks may end.
	idlePoll, poll = time.Second, 250 * time.Millisecond
	// mostBegun is how many series are remembered.
	mostBegun = 1_000_000
	// mostError is how many bytes of an error a series keeps: its record has a limit.
	mostError = 1000
	// tryAgain is when to try again what could not begin.
	tryAgain = 30 * time.Second
)

// Run works until ctx ends, then returns nil. While Redis is away it waits.
func (r *Runner) Run(ctx context.Context) error {
	failing := false
	for ctx.Err() == nil {
		pause, err := r.pass(ctx)
		if err != nil && ctx.Err() == nil {
			if pause = idlePoll; !failing {
				r.log.Warn("could not look after the series; trying again", "error", err)
			}
		}
		failing = err != nil
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// pass begins what is due now, and returns how long there is nothing to do.
func (r *Runner) pass(ctx context.Context) (pause time.Duration, err error) {
	p, err := r.m.PendingRecords(ctx, task.KindSeries, page)
	if err != nil {
		return 0, err
	}
	if len(p.Records) > 0 {
		return 0, r.all(ctx, &p)
	}
	pause = idlePoll
	if p.Total > 0 {
		pause = poll
	}
	if !p.Next.IsZero() {
		pause = min(pause, max(p.Next.Sub(p.Now), time.Millisecond))
	}
	return pause, nil
}

// all looks after the series that are pending, in an order of its own: others do so at the same time.
func (r *Runner) all(ctx context.Context, p *manager.Pending) error {
	rand.Shuffle(len(p.Records), func(i, k int) { p.Records[i], p.Records[k] = p.Records[k], p.Records[i] })
	var live []int64
	all := make([]*Series, len(p.Records))
	for i := range p.Records {
		s, err := parse(&p.Records[i])
		if err != nil {
			r.log.Error("a series cannot be read; remove it, or mend its record", "series", p.Records[i].Name, "error", err)
			continue
		}
		all[i], live = s, append(live, s.Live...)
	}
	ends, err := r.m.Ends(ctx, live)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	next := make(chan int, len(all))
	for i := range all {
		next <- i
	}
	close(next)
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range next {
				if err := r.one(ctx, p, &p.Records[i], all[i], ends); err != nil {
					errs[w] = err
				}
				if errors.Is(errs[w], task.ErrUnreachable) || ctx.Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// one looks after a series; nil if its record cannot be read. The error is about Redis.
func (r *Runner) one(ctx context.Context, p *manager.Pending, record *task.Record, s *Series, ends map[int64]time.Time) error {
	if s == nil { // or it would be looked at again at once, before others
		return r.put(ctx, *record, p.Now.Add(tryAgain))
	}
	step, err := s.decide(ends, p.Now, p.Epoch)
	if err == nil {
		err = r.carryOut(ctx, p, *record, &step)
	}
	switch {
	case err == nil, errors.Is(err, task.ErrRecordChanged):
		return nil // another runner was first, or somebody has changed it: it is pending again then
	case errors.Is(err, task.ErrUnreachable) || ctx.Err() != nil:
		return err
	}
	r.log.Error("an occurrence cannot begin; trying again", "series", s.Key, "error", err, "again_in", tryAgain)
	s.Error = strings.ToValidUTF8(err.Error()[:min(len(err.Error()), mostError)], "")
	record.Value = s.text()
	return r.put(ctx, *record, p.Now.Add(tryAgain))
}

// put writes a record that is due again later. Where others have changed it, that counts.
func (r *Runner) put(ctx context.Context, record task.Record, due time.Time) error {
	record.Due = due
	_, err := r.m.WriteRecord(ctx, record, manager.RecordTasks{})
	if errors.Is(err, task.ErrRecordChanged) {
		return nil
	}
	return err
}

// carryOut writes the series as it is after a step, with what begins.
func (r *Runner) carryOut(ctx context.Context, p *manager.Pending, record task.Record, step *verdict) error {
	s := step.After
	specs := make([]task.Spec, len(step.Open))
	for i, o := range step.Open {
		var err error
		if specs[i], err = s.spec(o); err != nil {
			return fmt.Errorf("occurrence %d: %w", o.Number, err)
		}
	}
	record.Value, record.Due = s.text(), step.Due
	written, err := r.m.WriteRecord(ctx, record, manager.RecordTasks{Specs: specs, Watched: s.watched()})
	if err != nil {
		return err
	}
	r.say(s, step, written.Opened, p.Epoch)
	if len(step.Cancel) == 0 {
		return nil
	}
	ctx = manager.WithCaller(ctx, "", "") // nobody has asked for it
	_, err = r.m.Cancel(ctx, step.Cancel, manager.ChangeOptions{By: "series", Reason: "the next occurrence is due"})
	return err
}

// say logs what was done, and which occurrence begins again because Redis has lost the one that had begun.
func (r *Runner) say(s *Series, step *verdict, opened []int64, epoch int64) {
	if n := len(s.History); n > 0 && s.History[n-1].What == skipped && len(step.Open) == 0 {
		r.log.Info("an occurrence is left out: the one before has not ended", "series", s.Key, "due", s.History[n-1].At)
	}
	if len(step.Open) == 0 {
		return
	}
	first, last := step.Open[0], step.Open[len(step.Open)-1]
	r.mu.Lock()
	before := r.begun[s.Key]
	if len(r.begun) >= mostBegun {
		clear(r.begun)
	}
	r.begun[s.Key] = begun{number: last.Number, epoch: epoch}
	r.mu.Unlock()
	if before.epoch > 0 && before.epoch < epoch && first.Number <= before.number {
		r.log.Warn("an occurrence begins again: Redis has lost that it had begun", "series", s.Key, "occurrence", first.Number,
			"due", first.At, "epoch_before", before.epoch, "epoch", epoch, "tasks", opened)
		return
	}
	r.log.Debug("began an occurrence", "series", s.Key, "occurrence", last.Number, "due", last.At, "tasks", opened)
}
