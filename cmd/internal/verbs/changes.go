package verbs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/task"
)

// changes is the verb that reads the log of changes.
func (a *app) changes() *cobra.Command {
	w := &answer.ChangesWanted{}
	cmd := withJSON(&cobra.Command{
		Use: "changes", Short: "List who changed what, the newest change first", Args: cobra.NoArgs,
		Long: "changes lists what people and clients have changed by verbs and over HTTP: when, who, the verb, on which\n" +
			"tasks, queues or other things, how many, and why. BY is USER@HOST, or token NAME. What workers and\n" +
			"servers do to tasks is in history. Servers keep the newest 100,000 entries; nothing else removes any.",
		Example: "  tdf-manager changes --since 12h\n  tdf-manager changes --by 'token ci' --on j7\n" +
			"  tdf-manager changes --on nightly --json | jq -r '.[0].by'",
		RunE: a.withManager(func(ctx context.Context, s *session) error { return listChanges(ctx, s, w) }),
	})
	f := cmd.Flags()
	f.StringVar(&w.By, "by", "", "only changes by `WHO`, as BY shows it")
	f.StringVar(&w.On, "on", "", "only changes of the task, job, queue, node, worker, series or token of that `name`")
	f.StringVar(&w.Since, "since", "", "only changes since a `time`, or that long ago, such as 12h or 7d")
	f.IntVar(&w.Most, "limit", 50, "list at most this `number` of changes")
	return cmd
}

func listChanges(ctx context.Context, s *session, w *answer.ChangesWanted) error {
	if err := checkMost(w.Most); err != nil {
		return err
	}
	found, more, err := answer.ChangeLog(ctx, s.manager, w)
	if err != nil {
		return err
	}
	return s.result(found, func() {
		if len(found) == 0 {
			s.note("no change is recorded that fits")
			return
		}
		table := s.out.Table("WHEN", "BY", "WHAT", "ON", "COUNT", "REASON")
		for i := range found {
			e := &found[i]
			if e.Damaged {
				table.Row("-", "-", "damaged", "-", "-", "-")
				continue
			}
			table.Row(when(e.At), cli.Safe(e.By), cli.Safe(e.What), cli.Safe(onText(e)), e.Count, dashText(e.Reason))
		}
		table.Flush()
		if more {
			s.note("there are older ones; --limit lists more of them")
		}
	})
}

// onText is what was changed, with how it was asked for.
func onText(e *task.ChangeEntry) string {
	if e.Asked == "" {
		return e.On
	}
	return e.On + " (" + e.Asked + ")"
}
