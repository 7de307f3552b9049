package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// purging is what retention asks of the store, with its copies.
type purging interface {
	leaving

	Retain(ctx context.Context, ids []int64, upTo int64) (int64, error)
	SomeSpans(ctx context.Context, first, last int64) (spans []tasks.Span, upTo int64, err error)
	Fields(ctx context.Context, ids []int64, names ...string) ([]map[string]string, error)
	KeepIndex(ctx context.Context) (from, to int64, err error)
	Outdated(
		ctx context.Context, turn upkeep.PurgeLease, rules []upkeep.Retention, most int, skip map[statemachine.State]int64,
	) (found []upkeep.Outdated, now statemachine.Time, mine bool, err error)
	Purge(ctx context.Context, tasks []upkeep.Outgoing) ([]upkeep.Purged, error)
}

// leaving is what keeping copies asks of the store.
type leaving interface {
	History() (seen conn.History, behind bool)
	Namespace() string
	NoteArchive(ctx context.Context, problem string) error
	Origin(ctx context.Context) (int64, error)
	PurgedAll(ctx context.Context) ([]tasks.Span, error)
	TasksByID(ctx context.Context, ids []int64) ([]*tasks.TaskHeader, error)
}

const (
	// retirePause is the time between two looks for archived tasks that are to go, when there are no more.
	retirePause = time.Second
	// retireTurn is how long the server whose turn it is may be silent before another one takes over.
	retireTurn = 15 * time.Second
	// retireBatch is how many ids of such tasks one look brings.
	retireBatch = 1000
	// indexBatch is how many ids of tasks that were archived before there was a retention are looked at in one call, and
	// indexCalls is how many calls there are between two looks for tasks that are to go.
	indexBatch, indexCalls = 200, 50
)

// purger removes archived tasks from Redis by the rules of retention. One server at a time does this, for a
// turn; if two do, each task is still removed once.
type purger struct {
	store purging
	log   *slog.Logger
	redis *link.Link
	rules []upkeep.Retention
	lease upkeep.PurgeLease
	// copies keeps the tasks before they go; nil if nobody wants that.
	copies *archiver
	// said is what was logged last about a call that failed: it fails again each second.
	said string
}

func newPurger(s *Server) *purger {
	return &purger{
		store: s.store, log: s.log, redis: link.New(slog.New(slog.DiscardHandler)), // the passes say it
		rules: s.opt.ArchiveRetention, lease: upkeep.PurgeLease{By: conn.NewToken(), For: retireTurn}, copies: s.copies,
	}
}

// retire looks for archived tasks that are to go until ctx ends. Without a retention it does nothing.
func (s *Server) retire(ctx context.Context, _ chan struct{}) {
	if len(s.opt.ArchiveRetention) == 0 {
		return
	}
	r := newPurger(s)
	defer r.copies.close()
	for ctx.Err() == nil {
		more, err := r.pass(ctx)
		r.copies.tend(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, task.ErrUnreachable) && !errors.Is(err, errCopies) && err.Error() != r.said {
			r.said = err.Error()
			r.log.Error("archived tasks could not be removed", "error", err)
		}
		if !more || err != nil {
			timing.Pause(ctx, retirePause)
		}
	}
}

// pass removes some tasks, and reports whether there are more.
func (r *purger) pass(ctx context.Context) (more bool, err error) {
	behind, err := r.index(ctx)
	if err != nil || r.copies.resting() {
		return false, err
	}
	found, _, mine, err := r.store.Outdated(ctx, r.lease, r.rules, retireBatch, nil)
	if err != nil || !mine {
		return behind, err
	}
	gone, due := int64(0), int64(0)
	for i := range found {
		due += found[i].Due
		n, err := r.let(ctx, found[i].Outcome, found[i].IDs)
		gone += n
		if err != nil {
			return false, err
		}
	}
	if gone > 0 {
		r.log.Debug("removed archived tasks", "tasks", gone)
	}
	return behind || due > gone && gone > 0, nil
}

// index notes tasks that were archived before there was a retention, a part of them at a time; it reports whether there
// are more.
func (r *purger) index(ctx context.Context) (more bool, err error) {
	from, to, err := r.store.KeepIndex(ctx)
	if err != nil {
		return false, err
	}
	for range indexCalls {
		if from >= to {
			return false, nil
		}
		spans, upTo, err := r.store.SomeSpans(ctx, from+1, to)
		if err != nil {
			return false, err
		}
		ids, last := part(spans, upTo, indexBatch)
		if _, err := r.store.Retain(ctx, ids, last); err != nil {
			return false, err
		}
		from = last
	}
	return from < to, nil
}

// let removes tasks; with archive_dir only after copying them.
func (r *purger) let(ctx context.Context, outcome statemachine.State, ids []int64) (gone int64, err error) {
	take := r.read
	if r.copies != nil {
		take = r.copies.keep
	}
	for len(ids) > 0 {
		tasks, err := take(ctx, outcome, ids)
		if err != nil {
			return gone, err
		}
		ids = ids[len(tasks):]
		n, err := r.purge(ctx, tasks)
		gone += n
		if err != nil {
			return gone, err
		}
	}
	return gone, nil
}

// read reads which revision the tasks have now.
func (r *purger) read(ctx context.Context, outcome statemachine.State, ids []int64) ([]upkeep.Outgoing, error) {
	fields, err := r.store.Fields(ctx, ids, "rev")
	if err != nil {
		return nil, err
	}
	tasks := make([]upkeep.Outgoing, len(ids))
	for i, id := range ids {
		rev, _ := strconv.ParseInt(fields[i]["rev"], 10, 64)
		tasks[i] = upkeep.Outgoing{ID: id, Rev: rev, Outcome: outcome}
	}
	return tasks, nil
}

// purge removes tasks in calls that do not block Redis for long, and returns how many were removed, or skipped because
// something keeps them.
func (r *purger) purge(ctx context.Context, tasks []upkeep.Outgoing) (gone int64, err error) {
	for page := range slices.Chunk(tasks, upkeep.PurgePage) {
		answers, err := r.store.Purge(ctx, page)
		if err != nil {
			return gone, err
		}
		for _, a := range answers {
			if a != upkeep.PurgeChanged {
				gone++
			}
		}
	}
	return gone, nil
}

const (
	// copiesRest is how long a server that cannot write copies lets go of nothing: longer than its turn, so that another
	// one, whose disk may be sound, takes over.
	copiesRest = retireTurn + 5*time.Second
	// copiesTasks and copiesBytes bound how much is written, and made safe on the disk, at once.
	copiesTasks, copiesBytes = 500, 4 << 20
)

// archiver writes archived tasks into a directory before they leave Redis. What it could not write must not go. A nil one keeps
// nothing.
type archiver struct {
	store leaving
	log   *slog.Logger
	name  string
	dir   string
	disk  *archive.Writer
	// page is how many tasks are read at once: fewer where they are large.
	page int
	// begun is the epoch in which it was last made sure that the directory says what had left Redis before.
	begun int64
	// rest is until when nothing is tried, said what is wrong, empty if nothing is, and cleared that Redis was told so.
	rest    time.Time
	said    string
	cleared bool
	after   time.Duration
}

func newCopies(opt *options) (*archiver, error) {
	dir, err := filepath.Abs(opt.ArchiveDir)
	c := &archiver{store: opt.store, log: opt.Logger, name: opt.Name, dir: dir, page: upkeep.PurgePage, after: copiesRest}
	said := map[string]bool{}
	if err == nil {
		c.disk, err = archive.Open(archive.Options{
			Dir: dir, Namespace: opt.store.Namespace(), TDF: opt.Version,
			Problem: func(err error) {
				if !said[err.Error()] {
					said[err.Error()] = true
					c.log.Error("a segment of the archive could not be sealed", "error", err)
				}
			},
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%w ArchiveDir: %w; name a directory that this server can write to", errOption, err)
	}
	return c, nil
}

// resting reports whether removal pauses because writing a copy has just failed.
func (c *archiver) resting() bool { return c != nil && time.Now().Before(c.rest) }

// keep writes copies of the first of the tasks, and returns those as they were written. When it returns they are on the disk.
// Some of them may not be what they were taken for any more: of these there is no copy, and Redis will not let them go.
func (c *archiver) keep(ctx context.Context, outcome statemachine.State, ids []int64) ([]upkeep.Outgoing, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	var records []archive.Record
	var tasks []upkeep.Outgoing
	for size := 0; size < copiesBytes && len(tasks) < min(copiesTasks, len(ids)); {
		n, more, out, err := c.read(ctx, outcome, ids[len(tasks):min(len(tasks)+c.page, copiesTasks, len(ids))])
		if err != nil {
			return nil, err
		}
		size, records, tasks = size+n, append(records, more...), append(tasks, out...)
	}
	if err := c.disk.Write(records); err != nil {
		return nil, c.failed(ctx, err)
	}
	c.succeeded(ctx)
	return tasks, nil
}

// read reads tasks whole, how large they are, and the revision at which they may go.
func (c *archiver) read(
	ctx context.Context, outcome statemachine.State, ids []int64,
) (size int, records []archive.Record, out []upkeep.Outgoing, err error) {
	found, err := c.store.TasksByID(ctx, ids)
	if err != nil {
		c.page = max(1, c.page/2) // they may have been too much for read_timeout
		return 0, nil, nil, err
	}
	seen, _ := c.store.History()
	for i, t := range found {
		one := upkeep.Outgoing{ID: ids[i], Outcome: outcome}
		if t != nil && t.Fields["state"] == string(statemachine.Archived) && t.Fields["outcome"] == string(outcome) {
			r := archive.NewRecord(ids[i], seen.Epoch, outcome, t.Fields)
			one.Rev, records = r.Rev, append(records, r)
			for name, value := range t.Fields {
				size += len(name) + len(value)
			}
		} else {
			one.Rev = neverRev
		}
		out = append(out, one)
	}
	if size > copiesBytes {
		c.page = max(1, c.page/2)
	} else {
		c.page = min(upkeep.PurgePage, c.page+1)
	}
	return size, records, out, nil
}

// neverRev is a revision that no task has: one of which there is no copy must not go, whatever it has become since it was read.
const neverRev = -1

// begin makes sure that the directory says what had left Redis before it was begun.
func (c *archiver) begin(ctx context.Context) error {
	seen, _ := c.store.History()
	if seen.Epoch > 0 && seen.Epoch == c.begun {
		return nil
	}
	origin, err := c.store.Origin(ctx)
	if err != nil {
		return err
	}
	var asked error
	err = archive.Begin(c.dir, c.store.Namespace(), origin, func() ([]archive.Range, error) {
		spans, err := c.store.PurgedAll(ctx)
		asked = err
		ranges := make([]archive.Range, len(spans))
		for i, s := range spans {
			ranges[i] = archive.Range{s.First, s.Last}
		}
		return ranges, err
	})
	switch {
	case asked != nil:
		return asked
	case err != nil:
		return c.failed(ctx, err)
	}
	c.begun = seen.Epoch
	return nil
}

// failed tells that copies cannot be written: in the log, once, and in Redis.
func (c *archiver) failed(ctx context.Context, err error) error {
	c.rest, c.cleared = time.Now().Add(c.after), false
	err = fmt.Errorf("archive_dir: %w; archived tasks stay in Redis until it can be written", err)
	if err.Error() != c.said {
		c.said = err.Error()
		c.log.Error("archived tasks are not removed, because no copy can be written", "error", err)
	}
	host, _ := os.Hostname() // it is only told
	text := fmt.Sprintf("server %s on %s: %v", c.name, host, err)
	if err := c.store.NoteArchive(ctx, text); err != nil && ctx.Err() == nil {
		c.log.Debug("could not tell Redis of it", "error", err)
	}
	return errCopies
}

// errCopies means that no copy could be written, which was told.
var errCopies = errors.New("no copy was written")

// succeeded tells that it can be done again.
func (c *archiver) succeeded(ctx context.Context) {
	if c.said != "" {
		c.said = ""
		c.log.Info("copies of archived tasks are written again", "archive_dir", c.dir)
	}
	if !c.cleared {
		c.cleared = c.store.NoteArchive(ctx, "") == nil
	}
}

// tend seals what has been growing for long enough.
func (c *archiver) tend(ctx context.Context) {
	if c == nil || c.resting() {
		return
	}
	if err := c.disk.Tend(); err != nil {
		_ = c.failed(ctx, err)
	}
}

// close seals what is there.
func (c *archiver) close() {
	if c == nil {
		return
	}
	if err := c.disk.Close(); err != nil {
		c.log.Error("a segment of the archive could not be sealed; the next server that uses archive_dir will do so", "error", err)
	}
}
