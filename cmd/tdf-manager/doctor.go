package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/doctor"
	"github.com/tdf-go/tdf/internal/store"
)

func (a *app) doctor() *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with Redis, this namespace and this host, and say the remedy",
		Long: "doctor looks at Redis (version, memory, persistence, replication, clock, latency, user, TLS), at the\n" +
			"namespace (servers, workers, nodes, history, damaged tasks, plans) and, if the configuration has [worker], at\n" +
			"the disks of this host. It changes nothing. It ends with 1 if a finding is of the kind fail, and with 3 if Redis\n" +
			"cannot be reached. What its user may not ask is skipped, and says so; each such question is in ACL LOG.",
		Example: "  tdf-manager doctor\n  tdf-manager --config worker.cfg doctor --json", Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.verb(func(ctx context.Context, s *session) (err error) {
		if s.store, err = store.Dial(s.cfg.Redis, s.cfg.TDF.Namespace); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.store.Close()) }()
		facts, err := doctor.Gather(ctx, s.store, s.cfg)
		if err != nil {
			return err
		}
		findings := doctor.Examine(facts)
		if err := printDiagnosis(s, findings, *asJSON); err != nil {
			return err
		}
		if doctor.Sick(findings) {
			return cli.Exit(cli.ExitTaskFailed)
		}
		return nil
	})
	return cmd
}

func printDiagnosis(s *session, findings []doctor.Finding, asJSON bool) error {
	if asJSON {
		return cli.WriteJSON(s.out, findings)
	}
	table := cli.NewTable(s.out, "SEVERITY", "CHECK", "FOUND")
	for _, f := range findings {
		table.Row(f.Severity, f.Check, f.Found)
		if f.Remedy != "" {
			table.Row("", "", "-> "+f.Remedy)
		}
	}
	return table.Flush()
}
