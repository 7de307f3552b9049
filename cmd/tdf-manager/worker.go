package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

// worker is the group of verbs that look at workers and order them.
func (a *app) worker() *cobra.Command {
	cmd := &cobra.Command{
		Use: "worker", Aliases: []string{"workers"}, Short: "List the workers, and drain or stop them",
		Long: "worker looks at the registry of workers, and orders them, from any host that reaches Redis.\n\n" +
			"A worker that drains claims nothing more and finishes what it runs. The order stays with its name,\n" +
			"also over a restart, until undrain takes it back.",
		Example: "  tdf-manager worker ls\n" +
			"  tdf-manager worker drain w1 w2 --wait && ssh host reboot\n" +
			"  tdf-manager worker undrain w1 w2\n" +
			"  tdf-manager worker stop all --dry-run",
	}
	cmd.AddCommand(a.workerLs(), a.workerShow(), a.drain(), a.undrain(), a.stop())
	return cmd
}

// everyName stands for all workers.
const everyName = "all"

// pick finds the workers asked for by name. all takes those that suit.
func pick(names []string, workers []manager.Worker, suits func(*manager.Worker) bool) ([]manager.Worker, error) {
	if slices.Contains(names, everyName) {
		if len(names) > 1 {
			return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("workers %q: all stands alone", names))
		}
		return slices.DeleteFunc(workers, func(w manager.Worker) bool { return !suits(&w) }), nil
	}
	var picked []manager.Worker
	for i, name := range names {
		at := slices.IndexFunc(workers, func(w manager.Worker) bool { return w.Name == name })
		if at < 0 {
			return nil, unknownWorker(name, workers)
		}
		if !slices.Contains(names[:i], name) {
			picked = append(picked, workers[at])
		}
	}
	return picked, nil
}

// unknownWorker names the worker that was meant, if one is near.
func unknownWorker(name string, workers []manager.Worker) error {
	known := make([]string, len(workers))
	for i := range workers {
		known[i] = workers[i].Name
	}
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("%w: %q; %s", manager.ErrNoWorker, name,
		meant(name, known, "see tdf-manager worker ls --all")))
}
