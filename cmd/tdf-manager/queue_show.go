package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) queueShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show all attributes of a queue, and what lies in it", Args: cobra.ExactArgs(1),
		Example: "  tdf-manager queue show default\n  tdf-manager queue show nightly --json",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		q, err := s.readQueue(ctx, s.args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return cli.WriteJSON(s.out, queueObject(&q))
		}
		return showQueue(ctx, s, &q)
	})
	return cmd
}

func showQueue(ctx context.Context, s *session, q *manager.Queue) error {
	now, err := s.manager.Now(ctx)
	if err != nil {
		return err
	}
	table := cli.NewTable(s.out)
	table.Row("queue", q.Name)
	if q.Damaged != "" {
		table.Row("damaged", q.Damaged+"; nothing is taken from the queue until this is set anew")
	}
	for _, a := range queueAttributes(q) {
		table.Row(a.name, dashText(a.text))
	}
	if !q.Created.IsZero() {
		table.Row("created", when(q.Created))
	}
	table.Row("waiting", fmt.Sprintf("%d, %d of them due", q.Waiting, q.Due))
	table.Row("oldest", waited(q.Oldest, now))
	table.Row("running", runningOn(q))
	table.Row("ended", endedText(q))
	return table.Flush()
}

func dashText(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// runningOn is the number of rounds under way, and where.
func runningOn(q *manager.Queue) string {
	parts := make([]string, 0, len(q.RunningByNode))
	for _, node := range slices.Sorted(maps.Keys(q.RunningByNode)) {
		parts = append(parts, fmt.Sprintf("%s %d", node, q.RunningByNode[node]))
	}
	text := strconv.FormatInt(q.Running, 10)
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}
