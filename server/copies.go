package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

const (
	// copiesRest is how long a server that cannot write copies lets go of nothing: longer than its turn, so that another
	// one, whose disk may be sound, takes over.
	copiesRest = retireTurn + 5*time.Second
	// copiesTasks and copiesBytes bound how much is written, and made safe on the disk, at once.
	copiesTasks, copiesBytes = 500, 4 << 20
)

// copies writes archived tasks into a directory before they leave Redis. What it could not write must not go. A nil one keeps
// nothing.
type copies struct {
	store *store.Store
	log   zerolog.Logger
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

func newCopies(opt *Options) (*copies, error) {
	dir, err := filepath.Abs(opt.ArchiveDir)
	c := &copies{store: opt.Store, log: opt.Log, name: opt.Name, dir: dir, page: store.PurgePage, after: copiesRest}
	said := map[string]bool{}
	if err == nil {
		c.disk, err = archive.Open(archive.Options{
			Dir: dir, Namespace: opt.Store.Namespace(), TDF: opt.Version,
			Problem: func(err error) {
				if !said[err.Error()] {
					said[err.Error()] = true
					c.log.Error().Err(err).Msg("a segment of the archive could not be sealed")
				}
			},
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%w ArchiveDir: %w; name a directory that this server can write to", errOption, err)
	}
	return c, nil
}

// resting reports whether nothing is to be removed now, because no copy could be written a moment ago.
func (c *copies) resting() bool { return c != nil && time.Now().Before(c.rest) }

// keep writes copies of the first of the tasks, and returns those as they were written. When it returns they are on the disk.
// Some of them may not be what they were taken for any more: of these there is no copy, and Redis will not let them go.
func (c *copies) keep(ctx context.Context, outcome statemachine.State, ids []int64) ([]store.Outgoing, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	var records []archive.Record
	var tasks []store.Outgoing
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
func (c *copies) read(
	ctx context.Context, outcome statemachine.State, ids []int64,
) (size int, records []archive.Record, out []store.Outgoing, err error) {
	found, err := c.store.Tasks(ctx, ids)
	if err != nil {
		c.page = max(1, c.page/2) // they may have been too much for read_timeout
		return 0, nil, nil, err
	}
	seen, _ := c.store.History()
	for i, t := range found {
		one := store.Outgoing{ID: ids[i], Outcome: outcome}
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
		c.page = min(store.PurgePage, c.page+1)
	}
	return size, records, out, nil
}

// neverRev is a revision that no task has: one of which there is no copy must not go, whatever it has become since it was read.
const neverRev = -1

// begin makes sure that the directory says what had left Redis before it was begun.
func (c *copies) begin(ctx context.Context) error {
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
func (c *copies) failed(ctx context.Context, err error) error {
	c.rest, c.cleared = time.Now().Add(c.after), false
	err = fmt.Errorf("archive_dir: %w; archived tasks stay in Redis until it can be written", err)
	if err.Error() != c.said {
		c.said = err.Error()
		c.log.Error().Err(err).Msg("archived tasks are not removed, because no copy can be written")
	}
	host, _ := os.Hostname() // it is only told
	text := fmt.Sprintf("server %s on %s: %v", c.name, host, err)
	if err := c.store.NoteArchive(ctx, text); err != nil && ctx.Err() == nil {
		c.log.Debug().Err(err).Msg("could not tell Redis of it")
	}
	return errCopies
}

// errCopies means that no copy could be written, which was told.
var errCopies = errors.New("no copy was written")

// succeeded tells that it can be done again.
func (c *copies) succeeded(ctx context.Context) {
	if c.said != "" {
		c.said = ""
		c.log.Info().Str("archive_dir", c.dir).Msg("copies of archived tasks are written again")
	}
	if !c.cleared {
		c.cleared = c.store.NoteArchive(ctx, "") == nil
	}
}

// tend seals what has been growing for long enough.
func (c *copies) tend(ctx context.Context) {
	if c == nil || c.resting() {
		return
	}
	if err := c.disk.Tend(); err != nil {
		_ = c.failed(ctx, err)
	}
}

// close seals what is there.
func (c *copies) close() {
	if c == nil {
		return
	}
	if err := c.disk.Close(); err != nil {
		c.log.Error().Err(err).Msg("a segment of the archive could not be sealed; the next server that uses archive_dir will do so")
	}
}
