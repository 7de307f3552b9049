package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/audit"
	"github.com/tdf-go/tdf/internal/cli"
)

func (a *app) verify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify", Short: "Check that every task is in exactly one state, and its record in order",
		Long: "verify reads all tasks of the namespace and changes nothing. It may run while everything is at\n" +
			"work. It ends with 1 if something is wrong.",
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withStore(func(ctx context.Context, s *session) error {
		report, err := audit.Verify(ctx, s.store)
		if err != nil {
			return err
		}
		if *asJSON {
			err = cli.WriteJSON(s.out, report)
		} else {
			err = printReport(s, &report)
		}
		if err == nil && !report.OK() {
			return cli.Exit(cli.ExitTaskFailed)
		}
		return err
	})
	return cmd
}

func printReport(s *session, r *audit.Report) error {
	for _, v := range r.Violations {
		if err := printf(s.out, "task %d: %s: %s\n", v.ID, v.Kind, cli.Safe(v.Text)); err != nil {
			return err
		}
	}
	verdict := "no violations"
	if n := len(r.Violations); n > 0 {
		verdict = fmt.Sprintf("%d VIOLATIONS", n)
	}
	return printf(s.out, "%d tasks checked (%s), %s\n", r.Checked, countsLine(r.States), verdict)
}
