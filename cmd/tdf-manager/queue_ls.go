package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) queueLs() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{listAlias}, Short: "List the queues with what lies in them",
		Long: "ls lists the queues by name. WAITING tasks are open, DUE ones may start now, the OLDEST of them for so\n" +
			"long. THREADS is the limit of running tasks in the whole fleet, MAXTHREADS that on each node. ENDED\n" +
			"counts the tasks that came to an end since the queue exists.",
		Example: "  tdf-manager queue ls\n  tdf-manager queue ls --json | jq '.[] | select(.paused).name'", Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		queues, err := s.manager.Queues(ctx)
		if err != nil {
			return err
		}
		if *asJSON {
			return cli.WriteJSON(s.out, objectsOf(queues, queueObject))
		}
		return listQueues(ctx, s, queues)
	})
	return cmd
}

func listQueues(ctx context.Context, s *session, queues []manager.Queue) error {
	now, err := s.manager.Now(ctx)
	if err != nil {
		return err
	}
	table := cli.NewTable(s.out, "NAME", "PAUSED", "WAITING", "DUE", "RUNNING", "THREADS", "MAXTHREADS", "OLDEST", "ENDED")
	for i := range queues {
		q := &queues[i]
		paused := "-"
		if q.Paused {
			paused = pausedField
		}
		if q.Damaged != "" {
			paused = "damaged"
		}
		table.Row(q.Name, paused, q.Waiting, q.Due, q.Running, limitText(q.Threads), limitText(q.MaxThreads),
			waited(q.Oldest, now), endedText(q))
	}
	if err := table.Flush(); err != nil || len(queues) > 1 {
		return err
	}
	return printf(s.cmd.ErrOrStderr(), "there is only the default queue; make another with tdf-manager queue add NAME\n")
}

// waited is how long a task has been due.
func waited(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	d := max(0, now.Sub(since))
	precision := time.Second
	if d < time.Minute {
		precision = 100 * time.Millisecond
	}
	return d.Round(precision).String()
}

func endedText(q *manager.Queue) string {
	for _, n := range q.Ended {
		if n > 0 {
			return countsLine(q.Ended)
		}
	}
	return "-"
}
