package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/manager"
)

func (a *app) nodeRm() *cobra.Command {
	r := removing{what: nodeField, find: findNode, remove: removeNode}
	return r.command(a, &cobra.Command{
		Use: "rm NAME...", Aliases: []string{"remove"}, Short: "Forget nodes that are gone",
		Long: "rm forgets nodes: their limits and what was found of them. A node from which a worker is registered, or on\n" +
			"which a task runs, is refused. A worker that starts there brings the node back.",
		Example: "  tdf-manager node rm node-9\n  tdf-manager node rm node-8 node-9 --dry-run",
	})
}

func findNode(ctx context.Context, s *session, name string) error {
	_, err := s.readNode(ctx, name)
	return err
}

func removeNode(ctx context.Context, s *session, name string, opts ...manager.ChangeOption) error {
	err := s.manager.RemoveNode(ctx, name, opts...)
	if errors.Is(err, manager.ErrNodeInUse) {
		return fmt.Errorf("%w; stop its workers first: tdf-manager worker stop", err)
	}
	return err
}
