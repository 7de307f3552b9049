package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// export is the verb of that name.
type export struct {
	choice choice
	dir    string
	file   string
	json   *bool

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
	cmd := &cobra.Command{
		Use: "export [TASKS]", Short: "Copy archived tasks from Redis to an archive on disk, or print them as JSON Lines",
		Long: "export copies archived tasks, all of them unless some are named. With --archive it writes them to a directory\n" +
			"in the form that [server] archive_dir has, leaves out what is there at the same revision, and may be interrupted at any\n" +
			"moment; otherwise it prints a line of JSON for each. Nothing is removed from Redis. --state says how they ended.\n\n" + selectorHelp,
		Example: "  tdf-manager export --archive /var/lib/tdf/archive\n  tdf-manager export --state failed --output failed.jsonl\n" +
			"  tdf-manager export 1-100 | jq .outcome",
		RunE: a.withBoth(e.do),
	}
	e.choice.flags(cmd)
	cmd.Flags().StringVar(&e.dir, archiveName, "", "directory to write segments to; it is made if it is not there")
	cmd.Flags().StringVarP(&e.file, "output", "o", "-", "file to write JSON Lines to; - is stdout")
	e.json = jsonFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive(archiveName, "output")
	return cmd
}

func (e *export) do(ctx context.Context, s *session) error {
	if *e.json && e.dir == "" && e.file == "-" {
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
	err = e.pages(ctx, s, sel, into)
	if closeErr := into.close(err); err == nil {
		err = closeErr
	}
	return e.report(ctx, s, err)
}

// selection is which of the archived tasks are meant.
func (e *export) selection(ctx context.Context, s *session) (manager.Selection, error) {
	sel, err := e.choice.archiveSelectionWith(s, s.newest(ctx))
	sel.All, sel.Fields = sel.IDs == nil, []string{"rev"}
	if sel.IDs == nil || e.choice.narrow() {
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
		return &lineSink{out: s.out}, nil
	default:
		return newFileSink(e.file)
	}
}

// exportPage is how many tasks are read whole, and written, at once.
const exportPage = 50

// pages exports what is meant.
func (e *export) pages(ctx context.Context, s *session, sel manager.Selection, into sink) error {
	for found, err := range s.manager.Select(ctx, sel, page) {
		if err != nil {
			return err
		}
		var ids []int64
		for i := range found {
			switch found[i].State {
			case statemachine.Archived:
				ids = append(ids, found[i].ID)
			default: // not there, or not archived
				e.done.NotFound = append(e.done.NotFound, found[i].ID)
			}
		}
		for part := range slices.Chunk(ids, exportPage) {
			if err := e.page(ctx, s, part, into); err != nil {
				return err
			}
		}
		e.progress(s)
	}
	return nil
}

// page exports some tasks. Those that have left Redis meanwhile are a server's to copy.
func (e *export) page(ctx context.Context, s *session, ids []int64, into sink) error {
	tasks, err := s.store.Tasks(ctx, ids)
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
	return nil
}

// progress writes a line now and then.
func (e *export) progress(s *session) {
	if time.Since(e.reported) >= plainInterval {
		e.reported = time.Now()
		fmt.Fprintf(s.cmd.ErrOrStderr(), "%s so far\n", e.summary())
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
		err = s.finish(orSignal(ctx, err))
	}
	out := s.cmd.ErrOrStderr() // stdout may have the tasks
	switch {
	case *e.json:
		e.done.NotFound = jsonList(e.done.NotFound)
		if written := cli.WriteJSON(s.out, e.done); written != nil {
			return written
		}
	case err != nil:
		fmt.Fprintf(out, "ended in the middle; so far: %s\n", e.summary())
	default:
		fmt.Fprintln(out, e.summary())
	}
	if err == nil && len(e.done.NotFound) > 0 {
		const most = 100
		fmt.Fprintf(out, "not archived, or not there: %s\n", shorten(ranges(e.done.NotFound), most))
		return cli.Exit(cli.ExitTaskFailed)
	}
	return err
}
