package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) queueAdd() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "add [NAME] [ATTRIBUTE=VALUE...]", Short: "Make a queue",
		Long: "add makes a queue; without a name it gets one, which is printed. See queue for the attributes.",
		Example: "  tdf-manager queue add nightly threads=20 maxthreads=2\n" +
			"  tdf-manager queue add gpu default_resources=gpu=1 nodes_pin=node-1,node-2\n" +
			"  tdf-manager queue add --dry-run nightly order=lifo",
	}
	dryRunFlag(cmd, &dryRun)
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		name, words := "", s.args
		if len(words) > 0 && !strings.Contains(words[0], "=") {
			name, words = words[0], words[1:]
			if name == "" {
				return cli.Usagef("the name is empty; leave it out to get one made")
			}
		}
		set, err := parsePairs(words)
		if err != nil {
			return err
		}
		q, err := s.manager.AddQueue(ctx, name, set, changeOptions(dryRun)...)
		if errors.Is(err, manager.ErrQueueExists) {
			return fmt.Errorf("%w; change it with tdf-manager queue set %s", err, name)
		}
		if err != nil {
			return err
		}
		return printAdded(s, &q, dryRun, *asJSON)
	})
	return cmd
}

func printAdded(s *session, q *manager.Queue, dryRun, asJSON bool) error {
	if asJSON {
		object := queueObject(q)
		object["dry_run"] = dryRun
		return cli.WriteJSON(s.out, object)
	}
	empty := manager.Queue{Threads: manager.NoLimit, MaxThreads: manager.NoLimit, Order: manager.OrderFifo, Aging: q.Aging}
	text := "added queue " + q.Name
	if dryRun {
		text = "would add queue " + q.Name
	}
	if set := changesOf(queueAttributes(&empty), queueAttributes(q)); len(set) > 0 {
		text += ": " + changesText(set)
	}
	return printf(s.out, "%s\n", cli.Safe(text))
}
