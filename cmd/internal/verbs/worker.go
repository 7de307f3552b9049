package verbs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// worker is the group of verbs that look at workers and order them.
func (a *app) worker() *cobra.Command {
	cmd := &cobra.Command{
		Use: "worker", Aliases: []string{"workers"}, Short: "List the workers, and drain or stop them",
		Long: "worker lists, drains and stops workers, from any host that reaches Redis.\n\n" +
			"A draining worker finishes its tasks and claims no more. The order stays with its name, also over a\n" +
			"restart, until undrain revokes it.",
		Example: "  tdf-manager worker ls\n" +
			"  tdf-manager worker drain w1 w2 --wait && ssh host reboot\n" +
			"  tdf-manager worker undrain w1 w2\n" +
			"  tdf-manager worker stop all --dry-run",
	}
	cmd.AddCommand(a.workerLs(), a.workerShow(), a.drain(), a.undrain(), a.stop())
	return cmd
}

// pick finds the workers asked for by name. all takes those that the order meets.
func (s *session) pick(names []string, workers []task.Worker, order task.WorkerCommand) ([]task.Worker, error) {
	if slices.Contains(names, answer.EveryWorker) {
		if len(names) > 1 {
			return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("workers %q: all stands alone", names))
		}
		return slices.DeleteFunc(workers, func(w task.Worker) bool { return !answer.Meets(order, &w) }), nil
	}
	var picked []task.Worker
	for _, name := range once(names) {
		w, err := s.workerNamed(name, workers)
		if err != nil {
			return nil, err
		}
		picked = append(picked, *w)
	}
	return picked, nil
}

// workerNamed finds a worker; the error names the one that was meant, if one is near.
func (s *session) workerNamed(name string, workers []task.Worker) (*task.Worker, error) {
	found, known := search(workers, name, func(w *task.Worker) string { return w.Name })
	if found == nil {
		return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("%w: %q; %s", task.ErrNoWorker, name,
			answer.Meant(name, known, "see "+s.command("worker ls --all"))))
	}
	return found, nil
}

func (a *app) workerLs() *cobra.Command {
	var all bool
	cmd := withJSON(&cobra.Command{
		Use: "ls", Aliases: []string{listAlias}, Short: "List the workers that are alive or lost",
		Long: "ls lists the workers by name. SLOTS counts those that run a task, of all; STUCK counts those whose\n" +
			"task does not end; HEARTBEAT is the time since the last heartbeat.",
		Args: cobra.NoArgs,
		RunE: a.withManager(func(ctx context.Context, s *session) error {
			workers, hidden, err := answer.Workers(ctx, s.manager, all)
			if err != nil {
				return err
			}
			return s.result(workers, func() { printWorkers(s, workers, hidden) })
		}),
	})
	cmd.Flags().BoolVar(&all, "all", false, "stopped workers too")
	return cmd
}

func printWorkers(s *session, workers []task.Worker, hidden int) {
	table := s.out.Table("NAME", "ID", "NODE", "STATE", "SLOTS", "STUCK", "HEARTBEAT", "CONTAINMENT", "VERSION", "REASON")
	for i := range workers {
		w := &workers[i]
		slots := fmt.Sprintf("%d/%d", w.Busy, w.Slots)
		table.Row(w.Name, w.ID, w.Node, w.Doing(), slots, w.Stuck, age(time.Duration(w.Silent)),
			w.Containment, w.Version, dashText(w.Reason))
	}
	table.Flush()
	if hidden > 0 {
		s.note("%d stopped workers are not shown; see them with --all", hidden)
	}
}

// age is for people.
func age(d time.Duration) string { return rounded(d) + " ago" }

func (a *app) workerShow() *cobra.Command {
	return showing(a, &cobra.Command{Use: "show NAME", Short: "Show the record of a worker"},
		readWorker, showWorker)
}

// readWorker finds a worker by its name.
func readWorker(ctx context.Context, s *session, name string) (*task.Worker, error) {
	workers, err := s.manager.Workers(ctx)
	if err != nil {
		return nil, err
	}
	return s.workerNamed(name, workers)
}

func showWorker(_ context.Context, s *session, k *task.Worker) error {
	table := s.out.Table()
	table.Row("worker", k.Name)
	table.Row("id", fmt.Sprintf("%d (incarnation %d)", k.ID, k.Incarnation))
	table.Row("state", k.Doing())
	table.Some("reason", k.Reason)
	table.Row("slots", fmt.Sprintf("%d of %d busy, %d stuck", k.Busy, k.Slots, k.Stuck))
	table.Row(nodeField, k.Node)
	table.Row("host", k.Host)
	table.Row("pid", k.PID)
	table.Row("version", k.Version)
	table.Row("containment", k.Containment)
	table.Row(envField, dashText(k.Env))
	table.Row("labels", dashText(strings.Join(k.Labels, ", ")))
	table.Row("resources", dashText(amounts(k.Resources)))
	table.Row("classes", dashText(strings.Join(k.Classes, ", ")))
	table.Row(maxThreadsField, string(k.MaxThreads)+" (on its node)")
	table.Row("started", when(k.Started))
	table.Row("heartbeat", fmt.Sprintf("%s (%s)", when(k.Heartbeat), age(time.Duration(k.Silent))))
	if !k.Ended.IsZero() {
		table.Row("ended", when(k.Ended))
	}
	table.Row("tasks", dashText(clean.Ranges(k.Tasks)))
	table.Flush()
	if len(k.Queues) > 0 {
		showQueues(s, k.Queues)
	}
	return nil
}

func showQueues(s *session, queues []task.QueueUse) {
	s.printf("\nqueues\n")
	table := s.out.Table("  CLASS", "QUEUE", "THREADS", "IDLE", "PROCESSING")
	for _, q := range queues {
		table.Row("  "+q.Class, q.Queue, q.Threads, q.Idle, q.Processing)
	}
	table.Flush()
}

// when is a moment for people; "-" if it has not come.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return moment(statemachine.Time(t.UnixMicro()))
}
