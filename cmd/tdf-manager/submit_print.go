package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
)

// idsOf are the ids of tasks of a submission: of all, of those it opened, and of
// those that were there before because of their keys.
func idsOf(opened []manager.Opened) (ids, fresh, existing []int64) {
	ids, existing = make([]int64, 0, len(opened)), []int64{}
	for _, o := range opened {
		ids = append(ids, o.ID)
		if o.Existing {
			existing = append(existing, o.ID)
		} else {
			fresh = append(fresh, o.ID)
		}
	}
	return ids, fresh, existing
}

// halfDone says what was opened before the error, and how to go on.
func (sub *submission) halfDone(s *session, opened []manager.Opened, total int, err error) error {
	var broken *manager.SubmissionError
	if !errors.As(err, &broken) {
		return err
	}
	if errors.Is(err, manager.ErrRequestKey) {
		how := "no task was opened"
		if ids, _, _ := idsOf(opened); len(ids) > 0 {
			how = fmt.Sprintf("only %d of %d tasks are there (%s)", len(ids), total, ranges(ids))
		}
		return cli.WithCode(cli.ExitUsage, fmt.Errorf("%s: --request-key %q was used for other tasks; "+
			"give another key for another submission", how, broken.RequestKey))
	}
	if len(opened) == 0 {
		return fmt.Errorf("no task was opened: %w", broken.Err)
	}
	if sub.quiet {
		if err := sub.print(s, opened, nil); err != nil {
			return err
		}
	}
	ids, _, _ := idsOf(opened)
	return fmt.Errorf("only %d of %d tasks were opened (%s): %w; "+
		"to open the others, and none twice, repeat it with --request-key %s",
		len(ids), total, ranges(ids), broken.Err, broken.RequestKey)
}

// warnOfLoss says, on stderr, that Redis may have lost some of the tasks that were opened
// since it was in that life. key is the flag that repeats the submission.
func (s *session) warnOfLoss(ctx context.Context, since manager.Life, opened []manager.Opened, key string) {
	ids, _, _ := idsOf(opened)
	if len(ids) == 0 {
		return
	}
	life, err := s.manager.Life(ctx)
	var found string
	switch tasks := "tasks " + ranges(ids); {
	case errors.Is(err, store.ErrHistory), err == nil && life.Epoch != since.Epoch:
		found = "Redis has lost changes, or the namespace was flushed, while " + tasks +
			" were opened: these ids may be missing, or mean other tasks"
	case err != nil:
		found = "Redis does not answer since " + tasks + " were opened, and may have lost some: " + cli.Safe(err.Error())
	case life != since:
		found = "Redis was started anew or failed over while " + tasks + " were opened: none of them is known to be lost"
	default:
		return
	}
	fmt.Fprintf(s.cmd.ErrOrStderr(), "tdf-manager: warning: %s; check with tdf-manager verify, or submit again with %s, "+
		"which opens only what is missing\n", found, key)
}

func (sub *submission) print(s *session, opened []manager.Opened, specs []manager.Spec) error {
	ids, fresh, existing := idsOf(opened)
	switch {
	case *sub.json:
		return cli.WriteJSON(s.out, map[string]any{"ids": ids, "existing": existing, dryRunField: false})
	case sub.quiet:
		var text strings.Builder
		for _, id := range ids {
			fmt.Fprintln(&text, id)
		}
		return printf(s.out, "%s", text.String())
	case len(ids) == 0:
		return printf(s.out, "there was nothing to open\n")
	case len(ids) == 1 && len(existing) == 1:
		return printf(s.out, "task %d was there already: key %s\n", ids[0], cli.Safe(specs[0].Key))
	case len(ids) == 1:
		return printf(s.out, "opened task %d: %s\n", ids[0], specText(&specs[0]))
	}
	text := fmt.Sprintf("opened %d tasks", len(fresh))
	if len(fresh) > 0 {
		text += ": " + ranges(fresh)
	}
	if len(existing) > 0 {
		text += fmt.Sprintf("; %d were there already by their keys: %s", len(existing), ranges(existing))
	}
	return printf(s.out, "%s\n", text)
}

func specText(spec *manager.Spec) string {
	return cli.Safe(spec.Program) + " " + cli.Safe(inputText(spec.Input, spec.Argv))
}

// printDry says what would be opened; there are no ids yet.
func (sub *submission) printDry(s *session, specs []manager.Spec) error {
	switch {
	case *sub.json:
		return cli.WriteJSON(s.out, map[string]any{"ids": []int64{}, "existing": []int64{}, "dry_run": true, "count": len(specs)})
	case sub.quiet:
		return nil
	case len(specs) == 0:
		return printf(s.out, "there is nothing to open\n")
	case len(specs) == 1:
		return printf(s.out, "would open a task: %s%s\n", specText(&specs[0]), ifNew(&specs[0]))
	}
	first, last := &specs[0], &specs[len(specs)-1]
	return printf(s.out, "would open %d tasks, from %s to %s\n", len(specs), specText(first), specText(last))
}

// ifNew says what a dry run cannot know.
func ifNew(spec *manager.Spec) string {
	if spec.Key == "" {
		return ""
	}
	return " (unless its key is known)"
}

// line is a task with the place it was read from.
type line struct {
	form

	file   string
	number int
}

// at says where in the file an error is.
func (l *line) at(err error) error {
	if l.number == 0 {
		return err
	}
	return fmt.Errorf("%s:%d: %w; nothing was opened", l.file, l.number, err)
}
