package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

// removing is a verb that takes queues or nodes away by their names.
type removing struct {
	// what they are called in what is printed.
	what string
	// find makes sure that one is there.
	find func(ctx context.Context, s *session, name string) error
	// remove takes one away; its error names the remedy.
	remove func(ctx context.Context, s *session, name string, opts ...manager.ChangeOption) error
}

// command adds arguments, flags and what is done to the command of the verb.
func (r *removing) command(a *app, cmd *cobra.Command) *cobra.Command {
	var dryRun bool
	cmd.Args = cobra.MinimumNArgs(1)
	dryRunFlag(cmd, &dryRun)
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		removed, err := r.all(ctx, s, dryRun, *asJSON)
		if err != nil || !*asJSON {
			return err
		}
		return cli.WriteJSON(s.out, map[string]any{"removed": removed, dryRunField: dryRun})
	})
	return cmd
}

// all takes away all that are named, each once, after it has found all of them.
func (r *removing) all(ctx context.Context, s *session, dryRun, silent bool) ([]string, error) {
	names := once(s.args)
	for _, name := range names {
		if err := r.find(ctx, s, name); err != nil {
			return nil, err
		}
	}
	did := "removed"
	if dryRun {
		did = "would remove"
	}
	for _, name := range names {
		if err := r.remove(ctx, s, name, changeOptions(dryRun)...); err != nil {
			return nil, err
		}
		if silent {
			continue
		}
		if err := printf(s.out, "%s %s %s\n", did, r.what, cli.Safe(name)); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// once leaves out names that came before.
func once(names []string) []string {
	seen := map[string]bool{}
	var list []string
	for _, name := range names {
		if !seen[name] {
			list = append(list, name)
		}
		seen[name] = true
	}
	return list
}
