package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) run() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "run", Short: "Archive whatever ends, until stopped",
		Long: "run takes the place of a project's own manager: it archives every task that ends, without\n" +
			"looking at it. While a project's own manager is alive on the namespace it refuses, because\n" +
			"that one waits for the outcomes.",
		Args: cobra.NoArgs,
		RunE: a.withManager(true, func() []manager.Option { return []manager.Option{manager.StandIn(force)} },
			func(ctx context.Context, s *session) error {
				cli.UseProcessors(1) // passes follow one another, and wait for Redis
				return s.manager.Run(ctx, manager.Handlers{})
			}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "run beside a project's own manager, which then misses outcomes")
	return cmd
}
