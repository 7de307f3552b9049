package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
)

func (a *app) queueSet() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "set NAME ATTRIBUTE=VALUE...", Short: "Change attributes of a queue, all of them or none",
		Long: "set changes attributes of a queue; it works on the next claims, and stops nothing that runs. An empty\n" +
			"value brings the default back. See queue for the attributes.",
		Example: "  tdf-manager queue set nightly maxthreads=2 nodes_pin=node-1,node-2\n" +
			"  tdf-manager queue set nightly threads=unlimited nodes_pin=\n" +
			"  tdf-manager queue set default threads=0 --dry-run",
		Args: cobra.MinimumNArgs(2),
	}
	dryRunFlag(cmd, &dryRun)
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		set, err := parsePairs(s.args[1:])
		if err != nil {
			return err
		}
		before, err := s.readQueue(ctx, s.args[0])
		if err != nil {
			return err
		}
		after, err := s.manager.SetQueue(ctx, before.Name, set, changeOptions(dryRun)...)
		if err != nil {
			return s.unknownQueue(ctx, before.Name, err)
		}
		changes := changesOf(queueAttributes(&before), queueAttributes(&after))
		return printSet(s, "queue "+after.Name, changes, queueObject(&after), dryRun, *asJSON)
	})
	return cmd
}

// printSet says what has changed of a queue or a node, also where others have changed
// more meanwhile. after is its JSON form.
func printSet(s *session, what string, changes []change, after map[string]any, dryRun, asJSON bool) error {
	if asJSON {
		after[dryRunField], after["changed"] = dryRun, changeObjects(changes)
		return cli.WriteJSON(s.out, after)
	}
	text := what + ": " + changesText(changes)
	switch {
	case len(changes) == 0:
		text = what + " is so already; nothing changes"
	case dryRun:
		text = "would change " + text
	}
	return printf(s.out, "%s\n", cli.Safe(text))
}
