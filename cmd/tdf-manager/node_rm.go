package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) nodeRm() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "rm NAME...", Aliases: []string{"remove"}, Short: "Forget nodes that are gone",
		Long: "rm forgets nodes: their limits and what was found of them. A node from which a worker is registered, or on\n" +
			"which a task runs, is refused. A worker that starts there brings the node back.",
		Example: "  tdf-manager node rm node-9\n  tdf-manager node rm node-8 node-9 --dry-run",
		Args:    cobra.MinimumNArgs(1),
	}
	dryRunFlag(cmd, &dryRun)
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		for _, name := range s.args {
			if _, err := s.readNode(ctx, name); err != nil {
				return err
			}
		}
		removed := []string{}
		for _, name := range s.args {
			err := s.manager.RemoveNode(ctx, name, changeOptions(dryRun)...)
			if errors.Is(err, manager.ErrNodeInUse) {
				return fmt.Errorf("%w; stop its workers first: tdf-manager worker stop", err)
			}
			if err != nil {
				return err
			}
			removed = append(removed, name)
			if !*asJSON {
				if err := printf(s.out, "%s node %s\n", map[bool]string{true: "would remove", false: "removed"}[dryRun], cli.Safe(name)); err != nil {
					return err
				}
			}
		}
		if *asJSON {
			return cli.WriteJSON(s.out, map[string]any{"removed": removed, dryRunField: dryRun})
		}
		return nil
	})
	return cmd
}
