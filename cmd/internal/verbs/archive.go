package verbs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/internal/ops/cold"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// archiveName is the flag that names directories of an archive.
const archiveName = "archive"

// archiveFlag adds --archive.
func archiveFlag(cmd *cobra.Command) *[]string {
	return cmd.Flags().StringArray(archiveName, nil,
		"read tasks that have left Redis from this directory, the archive_dir of servers; may be repeated")
}

// withArchive makes a verb that reads an archive and needs no Redis. What is damaged is told, and makes the exit code 1.
func (a *app) withArchive(
	dirs *[]string, do func(ctx context.Context, s *session, r *cold.Archive) error,
) runFunc {
	return func(cmd *cobra.Command, args []string) error {
		s := a.session(cmd, args)
		namespace, done, err := a.namespaceOf(cmd, *dirs)
		if done || err != nil {
			return err
		}
		damaged := 0
		r := s.archive(*dirs, namespace, &damaged)
		err = archiveError(do(cmd.Context(), s, r))
		if err == nil && damaged > 0 {
			err = cli.Exit(cli.ExitTaskFailed)
		}
		return s.finish(cli.OrSignal(cmd.Context(), err))
	}
}

// archiveError is what an archive answers; a directory that cannot be read is the user's to name.
func archiveError(err error) error {
	if _, coded := errors.AsType[cli.Coded](err); coded {
		return err // not about the archive
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return cli.WithCode(cli.ExitUsage, fmt.Errorf("--archive: %w", err))
	}
	return err
}

// archive reads directories, tells what is damaged on stderr, and counts it.
func (s *session) archive(dirs []string, namespace string, damaged *int) *cold.Archive {
	return &cold.Archive{Dirs: dirs, Namespace: namespace, Damaged: func(e error) {
		*damaged++
		s.warn("damaged: %s", cli.Safe(e.Error()))
	}}
}

// namespaceOf returns the namespace of the configuration. Without a configuration it is the only namespace in the
// directories.
func (a *app) namespaceOf(cmd *cobra.Command, dirs []string) (namespace string, done bool, err error) {
	if a.configured() {
		cfg, done, err := a.load(cmd)
		if done || err != nil {
			return "", done, err
		}
		return cfg.TDF.Namespace, false, nil
	}
	var all []string
	for _, dir := range dirs {
		found, err := archive.Namespaces(dir)
		if err != nil {
			return "", false, cli.WithCode(cli.ExitUsage, fmt.Errorf("--archive: %w", err))
		}
		all = once(append(all, found...))
	}
	switch len(all) {
	case 0:
		return "", false, cli.Usagef("--archive %s: there is no segment of an archive", strings.Join(dirs, ", "))
	case 1:
		return all[0], false, nil
	default:
		return "", false, cli.Usagef("--archive %s: there are tasks of the namespaces %s; say which is meant by --config",
			strings.Join(dirs, ", "), strings.Join(all, ", "))
	}
}

// configured reports whether there is a configuration, in whatever way.
func (a *app) configured() bool {
	return a.asked() || a.path() != defaultConfig || a.file != "" || !missing(defaultConfig)
}

// noLast is the answer to the word last, which an archive does not know.
func noLast() (bulk.Last, error) {
	return bulk.Last{}, cli.Usagef("tasks %q: only Redis knows which task was opened last; name tasks of an archive by their ids",
		bulk.LastTask)
}

// findTask reads the task that the only argument names from an archive.
func (s *session) findTask(ctx context.Context, r *cold.Archive) (*task.Task, error) {
	id, err := bulk.ParseID(s.args[0], noLast)
	if err != nil {
		return nil, err
	}
	found, err := r.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("task %d: %w in %s", id, task.ErrNoTask, strings.Join(r.Dirs, ", "))
	}
	if len(found) > 1 {
		s.warn("%d tasks had the id %d, because the namespace was flushed; this is the "+
			"one opened last, and zstdcat shows all of them as lines of the segments", len(found), id)
	}
	return found[0], nil
}

// cold is ls of an archive.
func (l *listing) cold(ctx context.Context, s *session, a *cold.Archive) error {
	if err := l.check(); err != nil {
		return err
	}
	sel, err := l.choice.archived(s, noLast)
	if err != nil {
		return err
	}
	sel.NotRetried = len(sel.States) > 0
	if l.limit > 0 && sel.IDs == nil {
		sel.Newest, sel.Limit = true, l.limit+1 // to know whether there are more
	}
	c := &coldList{l: l, s: s, sel: &sel, found: &archive.IDs{}, objects: jsonArray{out: s.out}}
	if err := c.list(a.Select(ctx, sel)); err != nil {
		return err
	}
	return c.hints()
}

// coldList is one listing of an archive.
type coldList struct {
	l   *listing
	s   *session
	sel *manager.Selection
	// found are the ids that were listed, n is how many tasks, more that there are some beyond the limit.
	found   *archive.IDs
	n       int
	more    bool
	columns []column
	objects jsonArray
}

// list prints what fits, and holds no more than a page of it, or than the limit.
func (c *coldList) list(tasks iter.Seq2[*task.Task, error]) error {
	var rows []*task.Task
	for t, err := range tasks {
		if err != nil {
			return err
		}
		if c.more = c.sel.Limit > 0 && len(rows) == c.l.limit; c.more {
			break
		}
		c.found.Add(t.ID)
		rows = append(rows, c.l.row(c.s, t))
		if c.sel.Limit == 0 && len(rows) == page {
			if err := c.print(rows); err != nil {
				return err
			}
			rows = rows[:0]
		}
	}
	if err := c.print(rows); err != nil {
		return err
	}
	if c.s.json {
		c.objects.end()
	}
	return c.s.out.Err()
}

// row is a task as the table and the JSON form want it: no more than of one in Redis.
func (l *listing) row(s *session, t *task.Task) *task.Task {
	t.Log, t.Fields = nil, nil
	t.Rounds = t.Present()
	if !s.json && l.output != wideOutput {
		t.Rounds = nil
	}
	return t
}

// print prints a page.
func (c *coldList) print(rows []*task.Task) error {
	first := c.n == 0
	c.n += len(rows)
	if c.s.json {
		for _, t := range rows {
			if err := c.objects.add(t); err != nil {
				return err
			}
		}
		return nil
	}
	if first {
		seen := rows
		if c.sel.Limit == 0 && len(rows) == page { // a later page may need the column QUEUE
			seen = append(seen, &task.Task{})
		}
		c.columns = c.l.columns(seen)
	}
	c.l.table(c.s, c.columns, rows, first)
	return c.s.out.Err()
}

// hints says what is not shown, and which ids are those of no task of the archive.
func (c *coldList) hints() error {
	missing := c.l.choice.missing(c.sel.IDs, c.found)
	switch {
	case len(missing) > 0:
		c.s.note("not in the archive: %s", someIDs(missing))
		return cli.Exit(cli.ExitTaskFailed)
	case c.more:
		c.s.note("there are more tasks than these; see them with --limit 0")
	case c.n == 0 && !c.s.json:
		c.s.note("no task of the archive fits")
	}
	return nil
}
