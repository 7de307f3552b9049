package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

func (a *app) show() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a task with all its rounds and its log", Args: cobra.ExactArgs(1),
	}
	asJSON := jsonFlag(cmd)
	dirs := archiveFlag(cmd)
	say := func(_ context.Context, s *session, task *manager.Task) error {
		if *asJSON {
			return cli.WriteJSON(s.out, taskObject(task))
		}
		return showTask(s.out, task)
	}
	cmd.RunE = a.withTask(dirs, say)
	return cmd
}

// withTask makes a verb about the task that the only argument names, in Redis or, if there are directories, in an archive.
func (a *app) withTask(
	dirs *[]string, do func(ctx context.Context, s *session, task *manager.Task) error,
) func(*cobra.Command, []string) error {
	live := a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		task, err := s.readTask(ctx)
		if err != nil {
			return err
		}
		return do(ctx, s, task)
	})
	cold := a.withArchive(dirs, func(ctx context.Context, s *session, r *archive.Reader) error {
		task, err := s.findTask(ctx, r)
		if err != nil {
			return err
		}
		return do(ctx, s, task)
	})
	return func(cmd *cobra.Command, args []string) error {
		if len(*dirs) > 0 {
			return cold(cmd, args)
		}
		return live(cmd, args)
	}
}

// readTask reads the task that the only argument names.
func (s *session) readTask(ctx context.Context) (*manager.Task, error) {
	id, err := parseID(s.args[0], s.newest(ctx))
	if err != nil {
		return nil, err
	}
	task, err := s.manager.Task(ctx, id)
	if errors.Is(err, manager.ErrPurged) {
		err = fmt.Errorf("%w; if [server] archive_dir was set, add --archive and that directory", err)
	}
	return task, err
}

func showTask(w io.Writer, t *manager.Task) error {
	if t.Err != nil {
		if err := printf(w, "%s\n", cli.Safe(t.Err.Error())); err != nil {
			return err
		}
	}
	if err := showFields(w, t); err != nil {
		return err
	}
	for _, r := range t.Rounds() {
		if err := showRound(w, &r); err != nil {
			return err
		}
	}
	return printf(w, "\nlog\n%s", indent(clean.URLs(t.Log)))
}

// tail is the end of a text: some lines, each not too long.
func tail(text string) string {
	const lines, width = 5, 200
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	out := all[max(0, len(all)-lines):]
	for i, line := range out {
		out[i] = shorten(line, width)
	}
	if len(all) > lines {
		out = append([]string{"..."}, out...)
	}
	return strings.Join(out, "\n")
}

// indent escapes a text of several lines for a terminal and moves it in.
func indent(text string) string {
	if text == "" {
		return ""
	}
	text = strings.TrimRight(cli.SafeLines(text), "\n")
	return "    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
}

func moment(t statemachine.Time) string {
	const longAgo = statemachine.Time(86400e6) // a random offset on no start at all is no date
	switch {
	case t == 0:
		return "0"
	case t == statemachine.Never, t < longAgo:
		return t.Text()
	}
	return time.UnixMicro(int64(t)).UTC().Format("2006-01-02 15:04:05.000000Z")
}

func span(d statemachine.Duration) string {
	if d == statemachine.Forever {
		return d.Text()
	}
	return (time.Duration(d) * time.Microsecond).String()
}
