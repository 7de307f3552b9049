package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) nodeSet() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "set NAME maxthreads=N|unlimited", Short: "Limit the tasks that run on a node, over all queues",
		Long: "set limits how many tasks run on a node over all queues: 0 lets nothing new begin, unlimited is no limit,\n" +
			"and an empty value leaves it to the configuration of its workers again. What runs is not stopped. The\n" +
			"node need not have been seen yet.",
		Example: "  tdf-manager node set node-1 maxthreads=3\n  tdf-manager node set node-1 maxthreads=unlimited\n" +
			"  tdf-manager node set node-1 maxthreads= --dry-run",
		Args: cobra.MinimumNArgs(2),
	}
	dryRunFlag(cmd, &dryRun)
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		set, err := parsePairs(s.args[1:])
		if err != nil {
			return err
		}
		nodes, err := s.manager.Nodes(ctx)
		if err != nil {
			return err
		}
		before := manager.Node{Name: s.args[0], MaxThreads: manager.NoLimit}
		at := slices.IndexFunc(nodes, func(n manager.Node) bool { return n.Name == before.Name })
		if at >= 0 {
			before = nodes[at]
		}
		after, err := s.manager.SetNode(ctx, before.Name, set, changeOptions(dryRun)...)
		if err != nil {
			return err
		}
		if at < 0 {
			fmt.Fprintf(s.cmd.ErrOrStderr(), "no worker has registered from node %s yet; %s\n", cli.Safe(before.Name),
				meant(before.Name, nodeNames(nodes), "the limit waits for it"))
		}
		changes := changesOf(nodeAttributes(&before), nodeAttributes(&after))
		return printSet(s, "node "+after.Name, changes, nodeObject(&after), dryRun, *asJSON)
	})
	return cmd
}

// nodeAttributes are those that can be set.
func nodeAttributes(n *manager.Node) []attribute {
	text := limitText(n.MaxThreads)
	if !n.Set {
		text += " (by its workers)"
	}
	return []attribute{{maxThreadsField, text}}
}
