package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// walking is what the walk over the tasks asks of the store.
type walking interface {
	IDs(ctx context.Context, state statemachine.State, offset, limit int64, reverse bool) ([]int64, error)
	Inspect(ctx context.Context, ids []int64) ([]upkeep.Inspection, statemachine.Time, error)
	LastID(ctx context.Context) (int64, error)
	SomeSpans(ctx context.Context, first, last int64) (spans []tasks.Span, upTo int64, err error)
	Watermark(ctx context.Context) (adopted, last int64, err error)
	MoveWatermark(ctx context.Context, from, to int64) (bool, error)
	Relist(ctx context.Context, i *upkeep.Inspection, to statemachine.State, now statemachine.Time) (bool, error)
	DeadLetter(ctx context.Context, i *upkeep.Inspection, now statemachine.Time) (bool, error)
	AskStop(ctx context.Context, commits ...tasks.Commit) ([]tasks.Outcome, error)
}

// publishing is what servers tell all programs, and what else is done now and then.
type publishing interface {
	LoadScripts(ctx context.Context) error
	PublishEvents(ctx context.Context, most int) error
	PublishGrace(ctx context.Context, grace statemachine.Duration) error
	PublishLease(ctx context.Context, lease statemachine.Duration) error
	PublishQuarantine(ctx context.Context, mode string) error
	EmptyBuckets(ctx context.Context) ([]string, error)
	Prune(ctx context.Context, names []string) (int, error)
	Recount(ctx context.Context) (mended int, err error)
	PublishBlobs(ctx context.Context, limit, quota int64, retention time.Duration) error
	Sweep(ctx context.Context) (uploads, returned int, err error)
}

// chunk is how many tasks one inspection reads: a script blocks Redis while
// it runs.
const chunk = 50

// janitor is the state of the background job.
type janitor struct {
	*Server
	redis *link.Link
	// walked is the id up to which the walk over all tasks has come.
	walked int64
	// running is the rank up to which the running tasks have been looked at.
	running int64
	// awaited are ids that a foreign client has taken but not written yet.
	awaited map[int64]time.Time
	// pruned is when buckets were last looked at, empty are those that were empty
	// then.
	pruned time.Time
	empty  []string
	lap    lap
	// dismissed is when workers that are gone were last looked for.
	dismissed time.Time
}

// awaitFor is how long an id without a task is looked at each second; after
// that only the slow walk comes by.
const awaitFor = time.Minute

// maintain adopts foreign tasks and looks at suspects each second, and when a pass has met a
// suspect, and repairs indices each RepairInterval.
func (s *Server) maintain(ctx context.Context, _ chan struct{}) {
	k := &janitor{Server: s, redis: link.New(s.log), awaited: map[int64]time.Time{}}
	tick := time.NewTicker(min(pollInterval, s.opt.RepairInterval))
	defer tick.Stop()
	var repaired time.Time
	for ctx.Err() == nil {
		err := k.adopt(ctx)
		if err == nil {
			err = k.inspect(ctx, k.suspects.due(), nil)
		}
		if err == nil && time.Since(repaired) >= s.opt.RepairInterval {
			repaired = time.Now()
			err = k.repair(ctx)
		}
		if !errors.Is(err, task.ErrUnreachable) { // the passes say that
			note(ctx, k.redis, err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-k.suspects.met:
		}
	}
}

// adopt looks at ids that our own clients have not made.
func (k *janitor) adopt(ctx context.Context) error {
	k.giveUp()
	if err := k.inspect(ctx, slices.Collect(maps.Keys(k.awaited)), nil); err != nil {
		return err
	}
	for {
		from, last, err := k.store.Watermark(ctx)
		if err != nil || from >= last {
			return err
		}
		spans, last, err := k.store.SomeSpans(ctx, from+1, last)
		if err != nil {
			return err
		}
		// A lost id is not waited for. If a client writes its task later, the walk finds it.
		spans = slices.DeleteFunc(spans, func(s tasks.Span) bool { return s.Lost })
		ids, to := part(spans, last, chunk)
		if err := k.inspect(ctx, ids, k.await); err != nil {
			return err
		}
		if moved, err := k.store.MoveWatermark(ctx, from, to); err != nil || !moved {
			return err
		}
	}
}

// giveUp ends the waiting for ids that were taken long ago.
func (k *janitor) giveUp() {
	for id, since := range k.awaited {
		if time.Since(since) > awaitFor {
			k.log.Warn("id was taken but no task was written", "task", id)
			delete(k.awaited, id)
		}
	}
}

func (k *janitor) await(id int64) { k.awaited[id] = time.Now() }

// repair publishes the settings, looks at running tasks and at the next part of all tasks.
func (k *janitor) repair(ctx context.Context) error {
	if err := k.publish(ctx); err != nil {
		return err
	}
	if err := k.lookAtRunning(ctx); err != nil {
		return err
	}
	if err := k.walk(ctx); err != nil {
		return err
	}
	if err := k.tidy(ctx); err != nil {
		return err
	}
	if err := k.recount(ctx); err != nil || time.Since(k.pruned) < pruneInterval {
		return err
	}
	k.pruned = time.Now()
	if err := k.prune(ctx); err != nil {
		return err
	}
	if err := k.store.ShortenChanges(ctx, upkeep.MostChanges); err != nil {
		return err
	}
	if err := k.sweep(ctx); err != nil || time.Since(k.dismissed) < dismissInterval {
		return err
	}
	k.dismissed = time.Now()
	return k.dismiss(ctx)
}

// publish tells clients what the configuration of the servers says, and loads
// the scripts for those that may not.
func (k *janitor) publish(ctx context.Context) error {
	if err := k.store.LoadScripts(ctx); err != nil {
		return err
	}
	if err := k.store.PublishGrace(ctx, k.opt.grace()); err != nil {
		return err
	}
	if err := k.store.PublishLease(ctx, timing.FromStd(k.opt.WorkerTimeout)); err != nil {
		return err
	}
	if err := k.store.PublishEvents(ctx, k.opt.Events); err != nil {
		return err
	}
	if err := k.store.PublishBlobs(ctx, k.opt.BlobLimit, k.opt.BlobQuota, k.opt.FileRetention); err != nil {
		return err
	}
	return k.store.PublishQuarantine(ctx, k.opt.Quarantine)
}

// lookAtRunning gives running tasks of foreign workers their deadline: nothing
// tells when they were claimed.
func (k *janitor) lookAtRunning(ctx context.Context) error {
	ids, err := k.store.IDs(ctx, statemachine.Running, k.running, int64(k.opt.RepairBatch), false)
	if err != nil {
		return err
	}
	k.running += int64(len(ids))
	if len(ids) < k.opt.RepairBatch {
		k.running = 0
	}
	return k.inspect(ctx, ids, nil)
}

// walk goes on with the slow walk over all ids.
func (k *janitor) walk(ctx context.Context) error {
	last, err := k.store.LastID(ctx)
	if err != nil || last == 0 {
		return err
	}
	if k.walked >= last {
		k.walked = 0
	}
	spans, last, err := k.store.SomeSpans(ctx, k.walked+1, last)
	if err != nil {
		return err
	}
	ids, to := part(spans, last, k.opt.RepairBatch)
	k.walked = to
	if err := k.inspect(ctx, ids, nil); err != nil || len(k.opt.ArchiveRetention) == 0 {
		return err
	}
	return k.retain(ctx, ids)
}

// retain notes of the tasks which are archived and may go: foreign managers do not.
func (k *janitor) retain(ctx context.Context, ids []int64) error {
	for page := range slices.Chunk(ids, indexBatch) {
		if _, err := k.store.Retain(ctx, page, 0); err != nil {
			return err
		}
	}
	return nil
}

// part returns up to most ids from the start of the spans, and the last id covered:
// last, if there are no more.
func part(spans []tasks.Span, last int64, most int) (ids []int64, to int64) {
	for _, s := range spans {
		to = min(s.Last, s.First+int64(most-len(ids))-1)
		ids = append(ids, span(s.First, to)...)
		if len(ids) == most {
			return ids, to
		}
	}
	return ids, last
}

// inspect examines tasks; absent, if given, hears of ids that nothing knows.
func (k *janitor) inspect(ctx context.Context, ids []int64, absent func(int64)) error {
	for len(ids) > 0 {
		part := ids[:min(chunk, len(ids))]
		ids = ids[len(part):]
		found, now, err := k.store.Inspect(ctx, part)
		if err != nil {
			return err
		}
		for i := range found {
			if absent != nil && found[i].Absent() {
				absent(found[i].Task.ID)
			}
			if err := k.examine(ctx, &found[i], now); err != nil {
				return err
			}
		}
	}
	return nil
}

// examine puts indices of a sound task right at once, and a disagreement when
// it is seen again unchanged.
func (k *janitor) examine(ctx context.Context, i *upkeep.Inspection, now statemachine.Time) error {
	t := &i.Task
	switch {
	case i.Absent():
		k.suspects.clear(t.ID)
		return k.forget(ctx, i)
	case t.Err == nil && len(i.Listed) == 1 && i.Listed[0] == t.State:
		k.suspects.clear(t.ID)
		delete(k.awaited, t.ID)
		return k.reindex(ctx, i, now)
	case k.suspects.confirm(t.ID, i.Fingerprint(), k.doubt(i)):
		err := k.repairTask(ctx, i, now)
		if err == nil {
			k.suspects.clear(t.ID)
		}
		return err
	default:
		return nil
	}
}

// doubt is how long a disagreement must last. A client that moves a task in several steps never
// spoils the record of one that is listed.
func (k *janitor) doubt(i *upkeep.Inspection) time.Duration {
	if i.Task.Err != nil && len(i.Listed) > 0 {
		return min(pollInterval, k.opt.RepairInterval)
	}
	return k.opt.RepairInterval
}

// forget takes an id without a task out of the deadline index.
func (k *janitor) forget(ctx context.Context, i *upkeep.Inspection) error {
	if i.Due == statemachine.Never {
		return nil
	}
	_, err := k.store.Unlist(ctx, upkeep.Index{Kind: upkeep.IndexDue}, []string{strconv.FormatInt(i.Task.ID, 10)})
	return err
}

// reindex corrects bucket, deadline, lease and counts of a sound task.
func (k *janitor) reindex(ctx context.Context, i *upkeep.Inspection, now statemachine.Time) error {
	t := &i.Task
	if i.Abandoned {
		return k.lose(ctx, t, now)
	}
	want := t.Deadline(k.opt.grace())
	left := t.Leased() && want < i.Due && want < now && i.Due != statemachine.Never // to its worker, see leave
	if i.Untold {
		if _, err := k.store.AskStop(ctx, k.askAgain(t)); err != nil {
			return err
		}
	}
	right := (left || sameTime(i.Due, want)) && i.InBucket == (t.State == statemachine.Open) && !i.Unlisted && !i.Unwatched && !i.Uncounted
	if right {
		return nil
	}
	changed, err := k.store.Reindex(ctx, t, k.opt.grace())
	if changed {
		k.log.Info("adopted into the indices", "task", t.ID, "state", string(t.State))
	}
	return err
}

// askAgain tells the worker of a round that was marked before; the record stays.
func (k *janitor) askAgain(t *tasks.TaskHeader) tasks.Commit {
	return k.commit(t, statemachine.Move{
		ID: t.ID, Event: statemachine.Cancel, Actor: statemachine.Manager, AskStop: true,
		From: t.State, To: t.State, Round: t.Round, Rev: t.Rev, Deadline: statemachine.Never,
	})
}

// lose takes back a round whose worker has registered anew without it, which
// only damage done by hand can bring about.
func (k *janitor) lose(ctx context.Context, t *tasks.TaskHeader, now statemachine.Time) error {
	m, err := statemachine.Decide(&t.Task, statemachine.Occurrence{
		Event: statemachine.Lose, Actor: statemachine.Server, FromLostEpoch: k.store.FromLostEpoch(&t.Task),
	}, now)
	if err != nil {
		return err
	}
	k.log.Warn("nobody runs this task any more; taking it back", "task", t.ID, "worker", t.Worker)
	_, _, err = k.apply(ctx, []tasks.Commit{k.commit(t, m)})
	return err
}

// sameTime allows for the rounding of a score.
func sameTime(a, b statemachine.Time) bool {
	return a == b || a != statemachine.Never && b != statemachine.Never && max(a-b, b-a) <= 1
}

// repairTask ends a disagreement between a task and its sets: the hash is right,
// except that a task in the archived set is archived, and that nothing can be
// said about a damaged one.
func (k *janitor) repairTask(ctx context.Context, i *upkeep.Inspection, now statemachine.Time) error {
	t := &i.Task
	if t.Err != nil {
		done, err := k.store.DeadLetter(ctx, i, now)
		if done {
			k.stats.repaired(1)
			k.log.Error("made a dead letter", "error", t.Err, "task", t.ID)
		}
		return err
	}
	to := t.State
	if to.IsOutcome() && slices.Contains(i.Listed, statemachine.Archived) {
		to = statemachine.Archived
	}
	done, err := k.store.Relist(ctx, i, to, now)
	if done {
		k.stats.repaired(1)
		k.log.Warn("repaired the lists of a task", "task", t.ID, "state", string(to))
	}
	return err
}

func span(from, to int64) []int64 {
	ids := make([]int64, 0, max(0, to-from+1))
	for id := from; id <= to; id++ {
		ids = append(ids, id)
	}
	return ids
}

// recount takes out of the counts that limits are enforced by what does not run
// any more, because a foreign client has moved it.
func (k *janitor) recount(ctx context.Context) error {
	gone, err := k.store.Recount(ctx)
	if gone > 0 {
		k.stats.repaired(gone)
		k.log.Info("took rounds that are over out of the counts", "rounds", gone)
	}
	return err
}

// pruneInterval is how long a bucket is empty at least before it is taken off
// the list.
const pruneInterval = time.Minute

// prune takes the buckets off the list that were empty the last time as well.
func (k *janitor) prune(ctx context.Context) error {
	empty, err := k.store.EmptyBuckets(ctx)
	if err != nil {
		return err
	}
	twice := slices.DeleteFunc(slices.Clone(empty), func(name string) bool { return !slices.Contains(k.empty, name) })
	k.empty = empty
	_, err = k.store.Prune(ctx, twice)
	return err
}

// sweep removes the uploads that nothing refers to, and the returned files whose time is over.
func (k *janitor) sweep(ctx context.Context) error {
	uploads, returned, err := k.store.Sweep(ctx)
	if uploads > 0 {
		k.log.Info("removed uploads that nothing refers to", "uploads", uploads)
	}
	if returned > 0 {
		k.log.Info("removed returned files after file_retention", "blobs", returned)
	}
	return err
}

// suspects are tasks that looked wrong. A disagreement is acted on only if it
// is seen twice without any change in between, because the original's clients
// move a task in several steps.
type suspects struct {
	now func() time.Time
	// met has a signal when somebody has met a task that was not suspected yet.
	met chan struct{}

	mu   sync.Mutex
	seen map[int64]sighting
}

type sighting struct {
	fingerprint string
	since       time.Time
	// next is when to look again.
	next time.Time
}

func newSuspects() *suspects {
	return &suspects{now: time.Now, met: make(chan struct{}, 1), seen: map[int64]sighting{}}
}

// add puts an id on the list, to be inspected by the background job at once.
func (s *suspects) add(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.seen[id]; ok {
		return
	}
	s.seen[id] = sighting{}
	select {
	case s.met <- struct{}{}:
	default:
	}
}

// due lists the suspects to look at now.
func (s *suspects) due() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []int64
	for id, was := range s.seen {
		if !was.next.After(s.now()) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// clear takes an id off the list.
func (s *suspects) clear(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, id)
}

// confirm reports whether the same disagreement was seen at least delay ago;
// else it remembers this sighting.
func (s *suspects) confirm(id int64, fingerprint string, delay time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, now := s.seen[id], s.now()
	if fingerprint == was.fingerprint {
		return now.Sub(was.since) >= delay
	}
	s.seen[id] = sighting{fingerprint: fingerprint, since: now, next: now.Add(delay)}
	return false
}
