package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) planLs() *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{listAlias}, Short: "List plans, the newest first", Args: cobra.NoArgs,
		Long:    "ls lists plans, the newest first. LEFT counts the tasks that have not ended.",
		Example: "  tdf-manager plan ls\n  tdf-manager plan ls --json | jq '.[] | select(.state == \"held\").id'",
	}
	cmd.Flags().IntVar(&most, "limit", 50, "at most so many")
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		if most < 1 {
			return cli.Usagef("--limit %d is below 1; write how many plans to list", most)
		}
		plans, err := s.manager.Plans(ctx, 0, most)
		if err != nil {
			return err
		}
		if *asJSON {
			return cli.WriteJSON(s.out, objectsOf(plans, planObject))
		}
		return listPlans(ctx, s, plans)
	})
	return cmd
}

func listPlans(ctx context.Context, s *session, plans []manager.Plan) error {
	now, err := s.manager.Now(ctx)
	if err != nil {
		return err
	}
	if len(plans) == 0 {
		return printf(s.cmd.ErrOrStderr(), "there is no plan yet; make one with tdf-manager plan submit FILE\n")
	}
	table := cli.NewTable(s.out, "ID", "NAME", "STATE", "TASKS", "LEFT", "ENDED", "AGE")
	for i := range plans {
		p := &plans[i]
		table.Row(p.ID, dashText(p.Name), p.State, p.Total, p.Left, dashText(endedLine(p)), waited(p.Created, now))
	}
	return table.Flush()
}
