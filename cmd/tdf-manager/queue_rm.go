package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) queueRm() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "rm NAME...", Aliases: []string{"remove"}, Short: "Take queues away in which no task waits or runs",
		Long: "rm takes queues away with their attributes. Tasks in them that have ended stay. A queue in which a task\n" +
			"is open, held or running is refused, and so is the default queue.",
		Example: "  tdf-manager queue rm nightly\n  tdf-manager cancel --queue nightly && tdf-manager queue rm nightly",
		Args:    cobra.MinimumNArgs(1),
	}
	dryRunFlag(cmd, &dryRun)
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		queues, err := s.readQueues(ctx, s.args)
		if err != nil {
			return err
		}
		removed := []string{}
		for i := range queues {
			name := queues[i].Name
			err := s.manager.RemoveQueue(ctx, name, changeOptions(dryRun)...)
			if errors.Is(err, manager.ErrQueueInUse) {
				return fmt.Errorf("%w; wait for its tasks, or cancel them: tdf-manager cancel --queue %s", err, name)
			}
			if err != nil {
				return s.unknownQueue(ctx, name, err)
			}
			removed = append(removed, name)
			if !*asJSON {
				if err := printf(s.out, "%s queue %s\n", map[bool]string{true: "would remove", false: "removed"}[dryRun], cli.Safe(name)); err != nil {
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
