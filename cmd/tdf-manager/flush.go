package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) flush() *cobra.Command {
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use: "flush --yes", Short: "Delete everything in the namespace, and nothing else", Args: cobra.NoArgs,
		Long: "flush deletes the whole namespace, also the tasks being worked on; workers stop what they run of them, and\n" +
			"other namespaces of the same Redis stay. Where Redis has access lists it takes the login of an administrator.",
		Example: "  tdf-manager flush --dry-run\n  tdf-manager flush --yes",
	}
	dryRunFlag(cmd, &dryRun)
	cmd.Flags().BoolVar(&yes, "yes", false, "really delete all tasks, also those being worked on")
	cmd.RunE = a.withStore(func(ctx context.Context, s *session) error {
		name := cli.Safe(s.store.Namespace())
		if !yes || dryRun {
			counts, err := s.store.Count(ctx)
			if err != nil {
				return err
			}
			all := manager.Counts(counts)
			if dryRun {
				return printf(s.out, "would delete all %d tasks of namespace %s, %d of which have not ended\n", all.Total(), name, all.Left())
			}
			return cli.WithCode(cli.ExitUsage, fmt.Errorf(
				"flush would delete all %d tasks of namespace %s, %d of which have not ended; add --yes",
				all.Total(), name, all.Left()))
		}
		n, err := s.store.Flush(ctx)
		if err != nil {
			return err
		}
		return printf(s.out, "deleted %d keys of namespace %s\n", n, name)
	})
	return cmd
}
