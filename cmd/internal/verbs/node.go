package verbs

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/task"
)

// node is the group of verbs that look at nodes and change them.
func (a *app) node() *cobra.Command {
	cmd := &cobra.Command{
		Use: nodeField, Aliases: []string{"nodes"}, Short: "List the nodes, limit their tasks, forget them",
		Long: "node shows the hosts from which workers have registered: how many tasks run there over all queues,\n" +
			"which resources are taken, and whether a node is in quarantine because tasks fail there that succeed\n" +
			"elsewhere.",
		Example: "  tdf-manager node ls\n  tdf-manager node show node-1\n  tdf-manager node set node-1 maxthreads=3\n" +
			"  tdf-manager node rm node-9",
	}
	cmd.AddCommand(a.nodeLs(), a.nodeShow(), a.nodeSet(), a.nodeRm())
	return cmd
}

// readNode finds a node by its name.
func readNode(ctx context.Context, s *session, name string) (*task.Node, error) {
	nodes, err := s.manager.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	found, known := search(nodes, name, nodeName)
	if found == nil {
		return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("no such node: %q; %s", name, answer.Meant(name, known, "see "+s.command("node ls"))))
	}
	return found, nil
}

func nodeName(n *task.Node) string { return n.Name }

func (a *app) nodeLs() *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "ls", Aliases: []string{listAlias}, Short: "List the nodes", Args: cobra.NoArgs,
		Long: "ls lists the nodes by name. WORKERS counts those alive, of all registered from there; MAXTHREADS is\n" +
			"the limit of running tasks over all queues; RESOURCES shows how much is taken, of how much is\n" +
			"offered; QUARANTINE says since when, and why.",
		Example: "  tdf-manager node ls\n  tdf-manager node ls --json",
		RunE: a.withManager(func(ctx context.Context, s *session) error {
			nodes, err := s.manager.Nodes(ctx)
			if err != nil {
				return err
			}
			return s.result(nodes, func() { listNodes(s, nodes) })
		}),
	})
}

func listNodes(s *session, nodes []task.Node) {
	if len(nodes) == 0 {
		s.printf("no node is known yet; start a worker: %s NAME worker.cfg\n", s.named("tdf-worker"))
		return
	}
	table := s.out.Table("NAME", "WORKERS", "RUNNING", "MAXTHREADS", "RESOURCES", "QUARANTINE")
	for i := range nodes {
		n := &nodes[i]
		table.Row(n.Name, fmt.Sprintf("%d/%d", alive(n), len(n.Workers)), n.Running, n.MaxThreads,
			dashText(usedText(n)), quarantineText(n))
	}
	table.Flush()
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
	all := map[string]int{}
	maps.Copy(all, n.Used)
	maps.Copy(all, n.Offered)
	return joined(all, func(name string, _ int) string { return fmt.Sprintf("%s %d/%d", name, n.Used[name], n.Offered[name]) })
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
		Use: "show NAME", Short: "Show the record of a node",
		Example: "  tdf-manager node show node-1\n  tdf-manager node show node-1 --json",
	}, readNode, showNode)
}

func showNode(_ context.Context, s *session, n *task.Node) error {
	table := s.out.Table()
	table.Row(nodeField, n.Name)
	table.Row(maxThreadsField, string(n.MaxThreads)+map[bool]string{true: " (set)", false: " (by its workers)"}[n.MaxThreadsSet])
	table.Row("running", n.Running)
	table.Row("resources", dashText(usedText(n)))
	table.Row("quarantine", quarantineText(n))
	if n.Run > 0 {
		table.Row("failures", fmt.Sprintf("%d in a row count against it", n.Run))
	}
	if !n.NextTrial.IsZero() {
		table.Row("next trial", when(n.NextTrial))
	}
	table.Flush()
	if len(n.Workers) == 0 {
		return nil
	}
	s.printf("\nworkers\n")
	workers := s.out.Table("  NAME", "STATE", "SLOTS", "HEARTBEAT", "OFFERS")
	for i := range n.Workers {
		w := &n.Workers[i]
		workers.Row("  "+w.Name, w.Doing(), fmt.Sprintf("%d/%d", w.Busy, w.Slots), age(time.Duration(w.Silent)), offerText(w))
	}
	workers.Flush()
	return nil
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
	return withJSON(withDryRun(&cobra.Command{
		Use: "set NAME maxthreads=N|unlimited", Short: "Limit the tasks that run on a node, over all queues",
		Long: "set limits how many tasks run on a node over all queues: with 0 no task starts, unlimited is no\n" +
			"limit, and an empty value restores the limit in the configuration of its workers. Running tasks are\n" +
			"not stopped. The node need not have registered yet.",
		Example: "  tdf-manager node set node-1 maxthreads=3\n  tdf-manager node set node-1 maxthreads=unlimited\n" +
			"  tdf-manager node set node-1 maxthreads= --dry-run",
		Args: cobra.MinimumNArgs(2), RunE: a.withManager(setNode),
	}))
}

func setNode(ctx context.Context, s *session) error {
	set, err := parseAttributes(s.args[1:])
	if err != nil {
		return err
	}
	n, err := answer.SetNode(ctx, s.manager, s.args[0], set, s.change())
	if err != nil {
		return err
	}
	if n.New {
		s.note("no worker has registered from node %s yet; %s", cli.Safe(n.Name), answer.Meant(n.Name, n.Known, "the limit waits for it"))
	}
	return s.result(n, func() { printSet(s, "node "+n.Name, n.Differences) })
}
