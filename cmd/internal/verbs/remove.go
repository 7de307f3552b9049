package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/task"
)

// removeAlias is the long name of rm.
const removeAlias = "remove"

// removing makes the verb that removes queues, nodes or tokens by name. The output calls one a what, read finds it, and the
// error of remove names the remedy.
func removing[T any](
	a *app, what string, cmd *cobra.Command, read func(context.Context, *session, string) (*T, error),
	remove func(context.Context, *session, string) error,
) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = a.withManager(func(ctx context.Context, s *session) error {
		if _, err := readAll(ctx, s, read); err != nil {
			return err
		}
		names, did := once(s.args), "removed"
		if s.dryRun {
			did = "would remove"
		}
		err := s.logged(ctx, "", func(ctx context.Context) error {
			for _, name := range names {
				if err := remove(ctx, s, name); err != nil {
					return err
				}
				if !s.json {
					s.printf("%s %s %s\n", did, what, cli.Safe(name))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return s.result(answer.Removed{Removed: names, DryRun: s.dryRun}, func() {})
	})
	return withJSON(withDryRun(cmd))
}

// readAll reads all that the arguments name, each once.
func readAll[T any](ctx context.Context, s *session, read func(context.Context, *session, string) (T, error)) ([]T, error) {
	var list []T
	for _, name := range once(s.args) {
		one, err := read(ctx, s, name)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// once leaves out names that came before.
func once(names []string) []string {
	var list []string
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// search finds what has a name in a list; otherwise known are the names there are.
func search[T any](list []T, name string, nameOf func(*T) string) (found *T, known []string) {
	for i := range list {
		known = append(known, nameOf(&list[i]))
		if known[i] == name {
			return &list[i], nil
		}
	}
	return nil, known
}

func (a *app) queueRm() *cobra.Command {
	return removing(a, queueField, &cobra.Command{
		Use: "rm NAME...", Aliases: []string{removeAlias}, Short: "Remove queues in which no task waits or runs",
		Long: "rm removes queues with their attributes; their ended tasks stay. It refuses the default queue, and\n" +
			"any queue with an open, held or running task.",
		Example: "  tdf-manager queue rm nightly\n  tdf-manager cancel --queue nightly && tdf-manager queue rm nightly",
	}, readQueue, removeQueue)
}

func removeQueue(ctx context.Context, s *session, name string) error {
	err := s.manager.RemoveQueue(ctx, name, s.change())
	if errors.Is(err, task.ErrQueueInUse) {
		return fmt.Errorf("%w; wait for its tasks, or cancel them: %s", err, s.command("cancel --queue %s", name))
	}
	return s.unknownQueue(ctx, name, err)
}

func (a *app) nodeRm() *cobra.Command {
	return removing(a, nodeField, &cobra.Command{
		Use: "rm NAME...", Aliases: []string{removeAlias}, Short: "Forget nodes that are gone",
		Long: "rm forgets nodes, with their limits and failures. It refuses a node from which a worker is\n" +
			"registered, or on which a task runs. A worker that starts there makes the node again.",
		Example: "  tdf-manager node rm node-9\n  tdf-manager node rm node-8 node-9 --dry-run",
	}, readNode, removeNode)
}

func removeNode(ctx context.Context, s *session, name string) error {
	err := s.manager.RemoveNode(ctx, name, s.change())
	if errors.Is(err, task.ErrNodeInUse) {
		return fmt.Errorf("%w; stop its workers first: %s", err, s.command("worker stop"))
	}
	return err
}

func (a *app) tokenRm() *cobra.Command {
	return removing(a, tokenField, &cobra.Command{
		Use: "rm NAME...", Aliases: []string{removeAlias, "revoke"}, Short: "Revoke tokens",
		Long:    "rm revokes tokens, by name or by ID: the next request that shows one is refused.",
		Example: "  tdf-manager token rm ci\n  tdf-manager token rm ci grafana --dry-run",
	}, readToken, func(ctx context.Context, s *session, name string) error {
		return s.manager.RevokeToken(ctx, name, s.change())
	})
}
