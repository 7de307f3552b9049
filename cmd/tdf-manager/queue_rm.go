package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/manager"
)

func (a *app) queueRm() *cobra.Command {
	r := removing{what: queueField, find: findQueue, remove: removeQueue}
	return r.command(a, &cobra.Command{
		Use: "rm NAME...", Aliases: []string{"remove"}, Short: "Take queues away in which no task waits or runs",
		Long: "rm takes queues away with their attributes. Tasks in them that have ended stay. A queue in which a task\n" +
			"is open, held or running is refused, and so is the default queue.",
		Example: "  tdf-manager queue rm nightly\n  tdf-manager cancel --queue nightly && tdf-manager queue rm nightly",
	})
}

func findQueue(ctx context.Context, s *session, name string) error {
	_, err := s.readQueue(ctx, name)
	return err
}

func removeQueue(ctx context.Context, s *session, name string, opts ...manager.ChangeOption) error {
	err := s.manager.RemoveQueue(ctx, name, opts...)
	if errors.Is(err, manager.ErrQueueInUse) {
		return fmt.Errorf("%w; wait for its tasks, or cancel them: tdf-manager cancel --queue %s", err, name)
	}
	return s.unknownQueue(ctx, name, err)
}
