package verbs

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/cold"
	"github.com/tdf-go/tdf/internal/ops/returned"
	"github.com/tdf-go/tdf/statemachine"
)

// results is the verb of that name.
type results struct {
	choice     choice
	csv, jsonl bool
	dir, tar   string
	name       string

	// n counts the tasks that were given, left those of them that have not ended; partial and retried are ids.
	n                int
	left             map[statemachine.State]int
	partial, retried []int64
	elsewhere        elsewhere
}

// The flags for the forms of results.
const (
	csvForm   = "csv"
	jsonlForm = "jsonl"
	dirForm   = "dir"
	tarForm   = "tar"
)

func (a *app) results() *cobra.Command {
	r := &results{left: map[statemachine.State]int{}, elsewhere: elsewhere{}}
	cmd := &cobra.Command{
		Use: "results [TASKS]", Short: "Collect what came of tasks: a table, CSV, JSON Lines, or files",
		Long: "results prints what came of tasks, of all of them unless some are named, in the order of their ids:\n" +
			"id, key, program, words, state, exit code, start, wall time in seconds, worker, output and error of\n" +
			"the last round that has begun. Without a form it is a table for people, which shortens texts.\n\n" +
			"--csv and --jsonl print every byte. What is not UTF-8 is in base64: in JSON in the object base64\n" +
			"instead, in CSV in its place, and the column base64 names it. The column partial names what is not\n" +
			"whole: output or error that was cut (output_limit) or is kept no longer (keep_rounds), or a damaged\n" +
			"record. A retry is a task of its own; retried_by of the task that it repeats has its id, and\n" +
			retriedHelp + "\n\n" +
			"--dir and --tar write a folder for each task, with the files output, error and task.json, a line of\n" +
			"--jsonl, and below files what the task has returned (submit --return), as long as Redis keeps it\n" +
			"(file_retention), or from the directory of --return-to if it is the same here; the other forms\n" +
			"say how many files that are. --name is the pattern of the folders:\n" +
			nameFields + ", where index counts the\n" +
			"tasks from 1, in the order of their ids, and anything but letters, digits and -_.,=+@ in what is put\n" +
			"there is written as %20. If two tasks have the same name, or a folder exists, nothing is written. A\n" +
			"folder has its name when it is whole.\n\n" +
			"It ends with 1 if a task has not ended, is not there or is not whole, and says so on stderr. How\n" +
			"tasks ended does not matter: see wait.\n\n" + selectorHelp + "\n\n" +
			"With --archive tasks come in the order of the archive.",
		Example: "  tdf-manager results --csv 1-1000 > out.csv\n  tdf-manager results --state failed --jsonl | jq .error\n" +
			"  tdf-manager results last --dir out --name '{word1}/{index}'",
	}
	r.choice.flags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&r.csv, csvForm, false, "print comma-separated values, below a line of names")
	flags.BoolVar(&r.jsonl, jsonlForm, false, "print a line of JSON for each task")
	flags.StringVar(&r.dir, dirForm, "", "directory to write a folder for each task to; made if it does not exist")
	flags.StringVar(&r.tar, tarForm, "", "file to write these folders to, as a tar archive; - is stdout")
	flags.StringVar(&r.name, "name", "{id}", "pattern of the names of folders")
	dirs := archiveFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive(csvForm, jsonlForm, dirForm, tarForm)
	cmd.RunE = a.anywhere(dirs, r.do)
	return cmd
}

func (r *results) do(ctx context.Context, s *session, a *cold.Archive) error {
	names, err := r.names(s)
	if err != nil {
		return err
	}
	visit := names.add
	if names == nil {
		visit = nil
	}
	w, err := r.choice.whole(ctx, s, a, visit, keyField, inputField, argvField)
	if err != nil {
		return err
	}
	into, err := r.sink(s, names, s.returned(ctx))
	if err != nil {
		return err
	}
	err = r.each(ctx, w, into)
	if closeErr := notWritten(into.close(err)); err == nil {
		err = closeErr
	}
	if err != nil {
		s.note("ended in the middle; so far: %d", r.n)
		return err
	}
	return r.report(ctx, w)
}

// names are those of the folders, nil if none are asked for.
func (r *results) names(s *session) (*folderNames, error) {
	given := func(flag string) bool { return s.cmd.Flags().Changed(flag) }
	switch {
	case given(dirForm) && r.dir == "" || given(tarForm) && r.tar == "":
		return nil, cli.Usagef("--%s is empty; name where to write", map[bool]string{true: dirForm, false: tarForm}[given(dirForm)])
	case r.dir == "" && r.tar == "" && given("name"):
		return nil, cli.Usagef("--name %q is for folders; add --dir or --tar", r.name)
	case r.dir == "" && r.tar == "":
		return nil, nil //nolint:nilnil // the other forms have no folders
	case r.tar == "-" && cli.IsTerminal(s.cmd.OutOrStdout()):
		return nil, cli.Usagef("--tar - would write an archive to the terminal; redirect it, or name a file")
	}
	pattern, err := parseFolderName(r.name)
	return &folderNames{pattern: pattern}, err
}

// resultSink takes results in one of the forms. close completes it, or, after an error, keeps what may be kept.
type resultSink interface {
	take(r *resultRow) error
	close(err error) error
}

func (r *results) sink(s *session, names *folderNames, read returned.Read) (resultSink, error) {
	out := s.cmd.OutOrStdout()
	switch {
	case r.dir != "":
		return newFolderSink(r.dir, names, read)
	case r.tar != "":
		return newTarSink(out, r.tar, names, read)
	case r.csv:
		return newCSVSink(out)
	case r.jsonl:
		return &objectSink{bufio.NewWriter(out)}, nil
	default:
		return newTableSink(out), nil
	}
}

// each gives the sink one task after the other, and notes what is to be told.
func (r *results) each(ctx context.Context, w *wholeTasks, into resultSink) error {
	for t, err := range w.all(ctx) {
		if err != nil {
			return err
		}
		row := newResultRow(t)
		if err := notWritten(into.take(row)); err != nil {
			return err
		}
		r.n++
		if t.Err == nil && !row.State.IsOutcome() {
			r.left[row.State]++
		}
		for _, what := range row.missing {
			if place := map[bool]string{true: row.Files.To, false: row.away}[what == filesFolder]; place != "" {
				r.elsewhere.add(place, t.ID)
			} else if n := len(r.partial); n == 0 || r.partial[n-1] != t.ID {
				r.partial = append(r.partial, t.ID)
			}
		}
		if row.RetriedBy > 0 {
			r.retried = append(r.retried, t.ID)
		}
	}
	return nil
}

// report says on stderr what is missing from the results, and returns the exit code.
func (r *results) report(ctx context.Context, w *wholeTasks) error {
	if target := strings.TrimPrefix(r.dir+r.tar, "-"); target != "" && r.n > 0 {
		w.s.note("wrote %d to %s", r.n, target)
	}
	w.s.noteIDs(r.retried, "retried, by tasks of their own (retried_by)")
	left := 0
	for _, n := range r.left {
		left += n
	}
	if left > 0 {
		w.s.note("%d not ended yet: %s", left, countsLine(r.left))
	}
	w.s.noteIDs(r.partial, "not whole (output_limit, keep_rounds, file_retention, or damaged)")
	r.elsewhere.note(w.s, "files or output", "they were")
	if err := w.tell(ctx, r.n); err != nil {
		return err
	}
	if left+len(r.partial)+len(r.elsewhere)+len(w.missing) > 0 {
		return cli.Exit(cli.ExitTaskFailed)
	}
	return nil
}

// notWritten is the error of an output; it has a code, so that it is not taken for one of what is read.
func notWritten(err error) error {
	if err == nil {
		return nil
	}
	return cli.WithCode(cli.ExitTaskFailed, fmt.Errorf("write: %w", err))
}
