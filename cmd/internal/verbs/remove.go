package verbs

import (
	"context"
	"errors"
	"fmt"

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
		return cli.WriteJSON(s.out, struct {
			Removed []string `json:"removed"`
			DryRun  bool     `json:"dry_run"`
		}{removed, dryRun})
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

// found drops what a method reads.
func found[T any](read func(*session, context.Context, string) (T, error)) func(context.Context, *session, string) error {
	return func(ctx context.Context, s *session, name string) error {
		_, err := read(s, ctx, name)
		return err
	}
}

func (a *app) queueRm() *cobra.Command {
	r := removing{what: queueField, find: found((*session).readQueue), remove: removeQueue}
	return r.command(a, &cobra.Command{
		Use: "rm NAME...", Aliases: []string{"remove"}, Short: "Take queues away in which no task waits or runs",
		Long: "rm takes queues away with their attributes. Tasks in them that have ended stay. A queue in which a task\n" +
			"is open, held or running is refused, and so is the default queue.",
		Example: "  tdf-manager queue rm nightly\n  tdf-manager cancel --queue nightly && tdf-manager queue rm nightly",
	})
}

func removeQueue(ctx context.Context, s *session, name string, opts ...manager.ChangeOption) error {
	err := s.manager.RemoveQueue(ctx, name, opts...)
	if errors.Is(err, manager.ErrQueueInUse) {
		return fmt.Errorf("%w; wait for its tasks, or cancel them: %s", err, s.command("cancel --queue %s", name))
	}
	return s.unknownQueue(ctx, name, err)
}

func (a *app) nodeRm() *cobra.Command {
	r := removing{what: nodeField, find: found((*session).readNode), remove: removeNode}
	return r.command(a, &cobra.Command{
		Use: "rm NAME...", Aliases: []string{"remove"}, Short: "Forget nodes that are gone",
		Long: "rm forgets nodes: their limits and what was found of them. A node from which a worker is registered, or on\n" +
			"which a task runs, is refused. A worker that starts there brings the node back.",
		Example: "  tdf-manager node rm node-9\n  tdf-manager node rm node-8 node-9 --dry-run",
	})
}

func removeNode(ctx context.Context, s *session, name string, opts ...manager.ChangeOption) error {
	err := s.manager.RemoveNode(ctx, name, opts...)
	if errors.Is(err, manager.ErrNodeInUse) {
		return fmt.Errorf("%w; stop its workers first: %s", err, s.command("worker stop"))
	}
	return err
}
