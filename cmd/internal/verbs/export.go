package verbs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// export is the verb of that name.
type export struct {
	choice choice
	dir    string
	file   string

	done     exported
	reported time.Time
}

// exported is what was done.
type exported struct {
	Exported int64 `json:"exported"`
	// Unchanged were in the directory at the same revision.
	Unchanged int64   `json:"unchanged"`
	NotFound  []int64 `json:"not_found"`
}

func (a *app) export() *cobra.Command {
	e := &export{}
	cmd := withJSON(&cobra.Command{
		Use: "export [TASKS]", Short: "Copy archived tasks to an archive on disk, or print them",
		Long: "export copies archived tasks, all of them unless some are named. With --archive it writes them to a\n" +
			"directory in the form of [server] archive_dir, skips tasks that are there at the same revision, and\n" +
			"may be interrupted at any moment; otherwise it prints a line of JSON for each. It removes nothing\n" +
			"from Redis. --state selects by outcome.\n\n" + selectorHelp,
		Example: "  tdf-manager export --archive /var/lib/tdf/archive\n  tdf-manager export --state failed --output failed.jsonl\n" +
			"  tdf-manager export 1-100 | jq .outcome",
		RunE: a.withManager(e.do),
	})
	e.choice.flags(cmd)
	cmd.Flags().StringVar(&e.dir, archiveName, "", "directory to write segments to; made if it does not exist")
	cmd.Flags().StringVarP(&e.file, "output", "o", "-", "file to write JSON Lines to; - is stdout")
	cmd.MarkFlagsMutuallyExclusive(archiveName, "output")
	return cmd
}

func (e *export) do(ctx context.Context, s *session) error {
	if s.json && e.dir == "" && e.file == "-" {
		return cli.Usagef("--json is about what was done, and stdout has the tasks; add --archive or --output, or leave --json out")
	}
	sel, err := e.selection(ctx, s)
	if err != nil {
		return err
	}
	into, err := e.sink(ctx, s, sel)
	if err != nil {
		return err
	}
	e.reported = time.Now()
	err = e.all(ctx, s, sel, into)
	if closeErr := into.close(err); err == nil {
		err = closeErr
	}
	return e.report(ctx, s, err)
}

// selection is which of the archived tasks are meant.
func (e *export) selection(ctx context.Context, s *session) (manager.Selection, error) {
	sel, err := e.choice.archived(s, bulk.Newest(ctx, s.manager))
	sel.All, sel.Fields = sel.IDs == nil, []string{"rev"}
	if len(sel.States) == 0 && (sel.IDs == nil || e.choice.Narrow()) {
		sel.States = []statemachine.State{statemachine.Archived} // else those that are not there are told of
	}
	return sel, err
}

// sink takes exported tasks. known reports whether it has a task at that revision already; close completes it, or, after an error,
// keeps what may be kept.
type sink interface {
	known(r *archive.Record) bool
	write(records []archive.Record) error
	close(err error) error
}

// sink makes the one that is asked for.
func (e *export) sink(ctx context.Context, s *session, sel manager.Selection) (sink, error) {
	switch {
	case e.dir != "":
		return newDirSink(ctx, s, e.dir, sel)
	case e.file == "-":
		return &lineSink{out: s.cmd.OutOrStdout()}, nil
	default:
		return newFileSink(e.file)
	}
}

// exportPage is how many tasks are read whole, and written, at once.
const exportPage = 50

// all exports what is meant.
func (e *export) all(ctx context.Context, s *session, sel manager.Selection, into sink) error {
	var ids []int64
	for t, err := range s.manager.Select(ctx, sel) {
		switch {
		case err != nil:
			return err
		case t.State == statemachine.Archived:
			ids = append(ids, t.ID)
		case len(sel.States) == 0:
			e.done.NotFound = append(e.done.NotFound, t.ID)
		}
		if len(ids) == exportPage {
			if err := e.page(ctx, s, ids, into); err != nil {
				return err
			}
			ids = nil
		}
	}
	return e.page(ctx, s, ids, into)
}

// page exports some tasks. Those that have left Redis meanwhile are a server's to copy.
func (e *export) page(ctx context.Context, s *session, ids []int64, into sink) error {
	tasks, err := s.store.TasksByID(ctx, ids)
	if err != nil {
		return err
	}
	sizes, err := s.store.Sizes(ctx)
	if err != nil {
		return err
	}
	var records []archive.Record
	for _, t := range tasks {
		if t == nil || t.State != statemachine.Archived {
			continue
		}
		r := archive.NewRecord(t.ID, sizes.Epoch, t.Outcome, t.Fields)
		if into.known(&r) {
			e.done.Unchanged++
			continue
		}
		records = append(records, r)
	}
	if err := into.write(records); err != nil {
		return err
	}
	e.done.Exported += int64(len(records))
	e.progress(s)
	return nil
}

// progress writes a line now and then.
func (e *export) progress(s *session) {
	if time.Since(e.reported) >= plainInterval {
		e.reported = time.Now()
		s.note("%s so far", e.summary())
	}
}

func (e *export) summary() string {
	text := fmt.Sprintf("exported %d", e.done.Exported)
	if e.done.Unchanged > 0 {
		text += fmt.Sprintf(", %d were there already", e.done.Unchanged)
	}
	return text
}

// report says what was done, also if it ended in the middle.
func (e *export) report(ctx context.Context, s *session, err error) error {
	if err != nil {
		err = s.finish(cli.OrSignal(ctx, err))
	}
	switch { // stdout may have the tasks
	case s.json:
		e.done.NotFound = clean.List(e.done.NotFound)
		s.out.JSON(e.done)
	case err != nil:
		s.note("ended in the middle; so far: %s", e.summary())
	default:
		s.note("%s", e.summary())
	}
	if err == nil && len(e.done.NotFound) > 0 {
		s.note("not archived, or not there: %s", someIDs(e.done.NotFound))
		return cli.Exit(cli.ExitTaskFailed)
	}
	return err
}

// lineSink writes lines of JSON.
type lineSink struct{ out io.Writer }

func (*lineSink) known(*archive.Record) bool { return false }

func (l *lineSink) write(records []archive.Record) error {
	for i := range records {
		text, err := records[i].Line()
		if err != nil {
			return err
		}
		if _, err := l.out.Write(text); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

func (*lineSink) close(error) error { return nil }

// fileSink writes lines of JSON to a file.
type fileSink struct {
	lineSink

	file *draftFile
}

func newFileSink(name string) (sink, error) {
	file, err := newDraft("--output", name)
	return &fileSink{lineSink{file}, file}, err
}

func (f *fileSink) close(err error) error { return f.file.close(err) }

// draftFile is a file that has its name when it is whole.
type draftFile struct {
	*bufio.Writer

	file *os.File // nil for stdout
	name string
}

// newDraft begins a file that a flag names.
func newDraft(flag, name string) (*draftFile, error) {
	const draft = ".part"
	file, err := os.OpenFile(name+draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("%s: %w", flag, err))
	}
	return &draftFile{bufio.NewWriter(file), file, name}, nil
}

// close gives the file its name, or, after an error, removes it.
func (f *draftFile) close(err error) error {
	if err == nil {
		err = f.Flush()
	}
	if f.file == nil {
		return err //nolint:wrapcheck // that of stdout
	}
	if err == nil {
		err = f.file.Sync()
	}
	if err = errors.Join(err, f.file.Close()); err == nil {
		err = os.Rename(f.file.Name(), f.name)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.file.Name()))
	}
	return err
}

// dirSink writes segments.
type dirSink struct {
	disk *archive.Writer
	has  map[archive.Key]int64
}

// newDirSink opens a directory, and looks for what it has of the tasks that are meant: memory is some hundred bytes for each task that is
// in Redis and in the directory.
func newDirSink(ctx context.Context, s *session, dir string, sel manager.Selection) (sink, error) {
	d := &dirSink{has: map[archive.Key]int64{}}
	var err error
	problem := func(err error) { s.warn("%s", cli.Safe(err.Error())) }
	namespace := s.cfg.TDF.Namespace
	d.disk, err = archive.Open(archive.Options{Dir: dir, Namespace: namespace, TDF: cli.ThisBuild().Version, Problem: problem})
	if err != nil {
		return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("--archive: %w; name a directory that you can write to", err))
	}
	if err := d.learn(ctx, s, dir, sel); err != nil {
		return nil, errors.Join(err, d.disk.Close())
	}
	return d, nil
}

// learn notes what had left Redis before, and reads which revisions there are.
func (d *dirSink) learn(ctx context.Context, s *session, dir string, sel manager.Selection) error {
	origin, err := s.store.Origin(ctx)
	if err != nil {
		return err
	}
	err = archive.Begin(dir, s.cfg.TDF.Namespace, origin, func() ([]archive.Range, error) {
		spans, err := s.store.PurgedAll(ctx)
		ranges := make([]archive.Range, len(spans))
		for i, p := range spans {
			ranges[i] = archive.Range{p.First, p.Last}
		}
		return ranges, err
	})
	if err != nil {
		return err
	}
	var meant archive.IDs
	for t, err := range s.manager.Select(ctx, sel) {
		if err != nil {
			return err
		}
		if t.State == statemachine.Archived {
			meant.Add(t.ID)
		}
	}
	damaged := 0
	r := s.archive([]string{dir}, s.cfg.TDF.Namespace, &damaged).Reader()
	return r.Each(ctx, func(e *archive.Entry) error {
		if rev, there := d.has[e.Key()]; meant.Has(e.ID) && (!there || rev < e.Rev) {
			d.has[e.Key()] = e.Rev
		}
		return nil
	})
}

func (d *dirSink) known(r *archive.Record) bool {
	rev, there := d.has[r.Key()]
	return there && rev >= r.Rev
}

func (d *dirSink) write(records []archive.Record) error { return d.disk.Write(records) }

// close seals what is there, also in the middle.
func (d *dirSink) close(error) error { return d.disk.Close() }
