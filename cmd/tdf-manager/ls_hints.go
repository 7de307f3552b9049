package main

import (
	"context"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// hints says what is not shown, and what to do where there is nothing.
func (l *listing) hints(ctx context.Context, s *session, found listed, sel manager.Selection) error {
	errs := s.cmd.ErrOrStderr()
	counts, err := s.manager.Count(ctx)
	if err != nil {
		return err
	}
	if err := l.moreHints(s, found.more, counts, sel); err != nil {
		return err
	}
	hidden := sel.IDs == nil && len(sel.States) == 0 && !l.all
	n := counts[statemachine.Archived]
	switch {
	case len(found.missing) > 0:
		const most = 100
		return printf(errs, "no such task: %s\n", shorten(ranges(found.missing), most))
	case hidden && n > 0:
		return printf(errs, "%d archived tasks are not shown; see them with --all\n", n)
	case len(found.tasks) > 0 || *l.json:
		return nil
	case l.choice.narrow():
		return printf(errs, "no task fits\n")
	default:
		return printf(errs, "there are no tasks; open one with tdf-manager submit\n")
	}
}

// moreHints tells of tasks beyond the limit: how many, unless that would have to be
// counted one by one.
func (l *listing) moreHints(s *session, more []statemachine.State, counts manager.Counts, sel manager.Selection) error {
	known := sel.Queue == "" && sel.Program == "" && sel.Match == nil
	for _, state := range more {
		format := "more tasks than these are %[2]s; see them with --limit 0\n"
		if known {
			format = "%[1]d more tasks are %[2]s; see them with --limit 0\n"
		}
		if err := printf(s.cmd.ErrOrStderr(), format, counts[state]-int64(l.limit), state); err != nil {
			return err
		}
	}
	return nil
}
