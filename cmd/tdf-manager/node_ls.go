package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) nodeLs() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{listAlias}, Short: "List the nodes", Args: cobra.NoArgs,
		Long: "ls lists the nodes by name. WORKERS are those that are alive, of all that have registered from there;\n" +
			"MAXTHREADS is the limit of running tasks over all queues; RESOURCES are what is taken of what is\n" +
			"offered; QUARANTINE says since when the node is set aside, and why.",
		Example: "  tdf-manager node ls\n  tdf-manager node ls --json",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		nodes, err := s.manager.Nodes(ctx)
		if err != nil {
			return err
		}
		if *asJSON {
			return cli.WriteJSON(s.out, objectsOf(nodes, nodeObject))
		}
		if len(nodes) == 0 {
			return printf(s.out, "no node is known yet; start a worker: tdf-worker NAME worker.cfg\n")
		}
		table := cli.NewTable(s.out, "NAME", "WORKERS", "RUNNING", "MAXTHREADS", "RESOURCES", "QUARANTINE")
		for i := range nodes {
			n := &nodes[i]
			table.Row(n.Name, fmt.Sprintf("%d/%d", alive(n), len(n.Workers)), n.Running, limitText(n.MaxThreads),
				dashText(usedText(n)), quarantineText(n))
		}
		return table.Flush()
	})
	return cmd
}

func alive(n *manager.Node) int {
	count := 0
	for i := range n.Workers {
		if n.Workers[i].State.Alive() {
			count++
		}
	}
	return count
}

// usedText is what is taken of what is offered: gpu 1/4, mem 0/65536.
func usedText(n *manager.Node) string {
	all := maps.Clone(n.Offered)
	if all == nil {
		all = map[string]int{}
	}
	for name := range n.Used {
		all[name] = n.Offered[name]
	}
	parts := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, fmt.Sprintf("%s %d/%d", name, n.Used[name], all[name]))
	}
	return strings.Join(parts, ", ")
}

func quarantineText(n *manager.Node) string {
	q := &n.Quarantine
	switch {
	case !q.Since.IsZero():
		return "since " + when(q.Since) + ": " + q.Reason
	case q.Reason != "":
		return q.Reason
	default:
		return "-"
	}
}
