package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

// node is the group of verbs that look at nodes and change them.
func (a *app) node() *cobra.Command {
	cmd := &cobra.Command{
		Use: nodeField, Aliases: []string{"nodes"}, Short: "List the nodes, limit what runs on them, forget them",
		Long: "node looks at the hosts that workers have registered from: how many tasks run there over all queues,\n" +
			"which resources are taken, and whether a node is set aside because tasks fail there that succeed\n" +
			"elsewhere.",
		Example: "  tdf-manager node ls\n  tdf-manager node show node-1\n  tdf-manager node set node-1 maxthreads=3\n" +
			"  tdf-manager node rm node-9",
	}
	cmd.AddCommand(a.nodeLs(), a.nodeShow(), a.nodeSet(), a.nodeRm())
	return cmd
}

// readNode finds a node by its name.
func (s *session) readNode(ctx context.Context, name string) (manager.Node, error) {
	nodes, err := s.manager.Nodes(ctx)
	if err != nil {
		return manager.Node{}, err
	}
	if at := slices.IndexFunc(nodes, func(n manager.Node) bool { return n.Name == name }); at >= 0 {
		return nodes[at], nil
	}
	return manager.Node{}, cli.WithCode(cli.ExitUsage,
		fmt.Errorf("no such node: %q; %s", name, meant(name, nodeNames(nodes), "see tdf-manager node ls")))
}

func nodeNames(nodes []manager.Node) []string {
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].Name
	}
	return names
}
