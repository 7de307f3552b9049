package verbs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/task"
)

// node is the group of verbs that look at nodes and change them.
func (a *app) node() *cobra.Command {
	cmd := &cobra.Command{
		Use: nodeField, Aliases: []string{"nodes"}, Short: "List the nodes, limit what runs on them, forget them",
		Long: "node looks at the hosts that workers have registered from: how many tasks run there over all queues,\n" +
			"which resources are taken, and whether a node is in quarantine because tasks fail there that succeed\n" +
			"elsewhere.",
		Example: "  tdf-manager node ls\n  tdf-manager node show node-1\n  tdf-manager node set node-1 maxthreads=3\n" +
			"  tdf-manager node rm node-9",
	}
	cmd.AddCommand(a.nodeLs(), a.nodeShow(), a.nodeSet(), a.nodeRm())
	return cmd
}

// readNode finds a node by its name.
func (s *session) readNode(ctx context.Context, name string) (task.Node, error) {
	nodes, err := s.manager.Nodes(ctx)
	if err != nil {
		return task.Node{}, err
	}
	if at := slices.IndexFunc(nodes, func(n task.Node) bool { return n.Name == name }); at >= 0 {
		return nodes[at], nil
	}
	return task.Node{}, cli.WithCode(cli.ExitUsage,
		fmt.Errorf("no such node: %q; %s", name, meant(name, nodeNames(nodes), "see "+s.command("node ls"))))
}

func nodeNames(nodes []task.Node) []string {
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].Name
	}
	return names
}

func (a *app) nodeLs() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{listAlias}, Short: "List the nodes", Args: cobra.NoArgs,
		Long: "ls lists the nodes by name. WORKERS are those that are alive, of all that have registered from there;\n" +
			"MAXTHREADS is the limit of running tasks over all queues; RESOURCES are what is taken of what is\n" +
			"offered; QUARANTINE says since when, and why.",
		Example: "  tdf-manager node ls\n  tdf-manager node ls --json",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		nodes, err := s.manager.Nodes(ctx)
		if err != nil {
			return err
		}
		if *asJSON {
			return cli.WriteJSON(s.out, nodes)
		}
		if len(nodes) == 0 {
			return printf(s.out, "no node is known yet; start a worker: %s NAME worker.cfg\n", s.daemon("worker"))
		}
		table := cli.NewTable(s.out, "NAME", "WORKERS", "RUNNING", "MAXTHREADS", "RESOURCES", "QUARANTINE")
		for i := range nodes {
			n := &nodes[i]
			table.Row(n.Name, fmt.Sprintf("%d/%d", alive(n), len(n.Workers)), n.Running, limitText(n.MaxThreads),
				dashText(usedText(n)), quarantineText(n))
		}
		return table.Flush()
	})
	return cmd
}

func alive(n *task.Node) int {
	count := 0
	for i := range n.Workers {
		if n.Workers[i].State.Alive() {
			count++
		}
	}
	return count
}

// usedText is what is taken of what is offered: gpu 1/4, mem 0/65536.
func usedText(n *task.Node) string {
	all := maps.Clone(n.Offered)
	if all == nil {
		all = map[string]int{}
	}
	for name := range n.Used {
		all[name] = n.Offered[name]
	}
	parts := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, fmt.Sprintf("%s %d/%d", name, n.Used[name], all[name]))
	}
	return strings.Join(parts, ", ")
}

func quarantineText(n *task.Node) string {
	q := &n.Quarantine
	switch {
	case !q.Quarantined.IsZero():
		return "since " + when(q.Quarantined) + ": " + q.Reason
	case q.Reason != "":
		return q.Reason
	default:
		return "-"
	}
}

func (a *app) nodeShow() *cobra.Command {
	return showing(a, &cobra.Command{
		Use: "show NAME", Short: "Show all that is known of a node",
		Example: "  tdf-manager node show node-1\n  tdf-manager node show node-1 --json",
	}, (*session).readNode, showNode)
}

func showNode(_ context.Context, s *session, n *task.Node) error {
	table := cli.NewTable(s.out)
	table.Row(nodeField, n.Name)
	table.Row(maxThreadsField, limitText(n.MaxThreads)+map[bool]string{true: " (set)", false: " (by its workers)"}[n.MaxThreadsSet])
	table.Row("running", n.Running)
	table.Row("resources", dashText(usedText(n)))
	table.Row("quarantine", quarantineText(n))
	if n.Run > 0 {
		table.Row("failures", fmt.Sprintf("%d in a row count against it", n.Run))
	}
	if !n.NextTrial.IsZero() {
		table.Row("next trial", when(n.NextTrial))
	}
	if err := table.Flush(); err != nil || len(n.Workers) == 0 {
		return err
	}
	if err := printf(s.out, "\nworkers\n"); err != nil {
		return err
	}
	workers := cli.NewTable(s.out, "  NAME", "STATE", "SLOTS", "HEARTBEAT", "OFFERS")
	for i := range n.Workers {
		w := &n.Workers[i]
		workers.Row("  "+w.Name, workerState(w), fmt.Sprintf("%d/%d", w.Busy, w.Slots), age(time.Duration(w.Silent)), offerText(w))
	}
	return workers.Flush()
}

// offerText is what a worker offers to tasks.
func offerText(w *task.Worker) string {
	var parts []string
	if w.Env != "" {
		parts = append(parts, "env "+w.Env)
	}
	parts = append(parts, w.Labels...)
	if len(w.Resources) > 0 {
		parts = append(parts, amounts(w.Resources))
	}
	return dashText(strings.Join(parts, " "))
}

func (a *app) nodeSet() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "set NAME maxthreads=N|unlimited", Short: "Limit the tasks that run on a node, over all queues",
		Long: "set limits how many tasks run on a node over all queues: 0 lets nothing new begin, unlimited is no limit,\n" +
			"and an empty value leaves it to the configuration of its workers again. What runs is not stopped. The\n" +
			"node need not have been seen yet.",
		Example: "  tdf-manager node set node-1 maxthreads=3\n  tdf-manager node set node-1 maxthreads=unlimited\n" +
			"  tdf-manager node set node-1 maxthreads= --dry-run",
		Args: cobra.MinimumNArgs(2),
	}
	dryRunFlag(cmd, &dryRun)
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		set, err := parsePairs(s.args[1:])
		if err != nil {
			return err
		}
		nodes, err := s.manager.Nodes(ctx)
		if err != nil {
			return err
		}
		before := task.NewNode(s.args[0]).Idle()
		at := slices.IndexFunc(nodes, func(n task.Node) bool { return n.Name == before.Name })
		if at >= 0 {
			before = nodes[at]
		}
		after, err := s.manager.SetNode(ctx, before.Name, set, changeOptions(dryRun)...)
		if err != nil {
			return err
		}
		if at < 0 {
			fmt.Fprintf(s.cmd.ErrOrStderr(), "no worker has registered from node %s yet; %s\n", cli.Safe(before.Name),
				meant(before.Name, nodeNames(nodes), "the limit waits for it"))
		}
		changes := changesOf(nodeAttributes(&before), nodeAttributes(&after))
		if *asJSON {
			return cli.WriteJSON(s.out, struct {
				*task.Node
				changed
			}{&after, changedBy(changes, dryRun)})
		}
		return printSet(s, "node "+after.Name, changes, dryRun)
	})
	return cmd
}

// nodeAttributes are those that can be set.
func nodeAttributes(n *task.Node) []attribute {
	text := limitText(n.MaxThreads)
	if !n.MaxThreadsSet {
		text += " (by its workers)"
	}
	return []attribute{{maxThreadsField, text}}
}
