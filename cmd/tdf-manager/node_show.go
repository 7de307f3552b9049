package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) nodeShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show all that is known of a node", Args: cobra.ExactArgs(1),
		Example: "  tdf-manager node show node-1\n  tdf-manager node show node-1 --json",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		n, err := s.readNode(ctx, s.args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return cli.WriteJSON(s.out, nodeObject(&n))
		}
		return showNode(s, &n)
	})
	return cmd
}

func showNode(s *session, n *manager.Node) error {
	table := cli.NewTable(s.out)
	table.Row(nodeField, n.Name)
	table.Row(maxThreadsField, limitText(n.MaxThreads)+map[bool]string{true: " (set)", false: " (by its workers)"}[n.Set])
	table.Row("running", n.Running)
	table.Row("resources", dashText(usedText(n)))
	table.Row("quarantine", quarantineText(n))
	if n.Quarantine.Run > 0 {
		table.Row("failures", fmt.Sprintf("%d in a row count against it", n.Quarantine.Run))
	}
	if !n.Quarantine.NextTrial.IsZero() {
		table.Row("next trial", when(n.Quarantine.NextTrial))
	}
	if err := table.Flush(); err != nil || len(n.Workers) == 0 {
		return err
	}
	if err := printf(s.out, "\nworkers\n"); err != nil {
		return err
	}
	workers := cli.NewTable(s.out, "  NAME", "STATE", "SLOTS", "HEARTBEAT", "OFFERS")
	for i := range n.Workers {
		w := &n.Workers[i]
		workers.Row("  "+w.Name, workerState(w), fmt.Sprintf("%d/%d", w.Busy, w.Slots), age(w.Silent), offerText(w))
	}
	return workers.Flush()
}

// offerText is what a worker offers to tasks.
func offerText(w *manager.Worker) string {
	var parts []string
	if w.Env != "" {
		parts = append(parts, "env "+w.Env)
	}
	parts = append(parts, w.Labels...)
	if len(w.Resources) > 0 {
		parts = append(parts, amounts(w.Resources))
	}
	return dashText(strings.Join(parts, " "))
}

// nodeObject is the JSON form; see queueObject.
func nodeObject(n *manager.Node) map[string]any {
	q := &n.Quarantine
	return map[string]any{
		nameField: n.Name, maxThreadsField: jsonLimit(n.MaxThreads), "set": n.Set, "running": n.Running,
		"offered": orEmptyMap(n.Offered), "used": orEmptyMap(n.Used), "workers": objectsOf(n.Workers, workerObject),
		"quarantine": map[string]any{
			"since": jsonTime(q.Since), "run": q.Run, "next_trial": jsonTime(q.NextTrial), "reason": q.Reason,
		},
	}
}
