package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func (a *app) workerLs() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{listAlias}, Short: "List the workers that are alive or lost",
		Long: "ls lists the workers by name. SLOTS are those that run a task, of all; STUCK ones hold a task that\n" +
			"does not end; HEARTBEAT is how long ago the worker was last heard of.",
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&all, "all", false, "stopped workers too")
	asJSON := jsonFlag(cmd)
	cmd.RunE = a.withManager(false, noOptions, func(ctx context.Context, s *session) error {
		workers, err := s.manager.Workers(ctx)
		if err != nil {
			return err
		}
		shown := []manager.Worker{}
		for _, w := range workers {
			if all || w.State != manager.WorkerStopped {
				shown = append(shown, w)
			}
		}
		if *asJSON {
			return cli.WriteJSON(s.out, objectsOf(shown, workerObject))
		}
		return printWorkers(s, shown, len(workers)-len(shown))
	})
	return cmd
}

func printWorkers(s *session, workers []manager.Worker, hidden int) error {
	table := cli.NewTable(s.out, "NAME", "ID", "NODE", "STATE", "SLOTS", "STUCK", "HEARTBEAT", "CONTAINMENT", "VERSION", "REASON")
	for i := range workers {
		w := &workers[i]
		slots := fmt.Sprintf("%d/%d", w.Busy, w.Slots)
		table.Row(w.Name, w.ID, w.Node, workerState(w), slots, w.Stuck, age(w.Silent), w.Containment, w.Version, dashText(w.Reason))
	}
	if err := table.Flush(); err != nil || hidden == 0 {
		return err
	}
	return printf(s.cmd.ErrOrStderr(), "%d stopped workers are not shown; see them with --all\n", hidden)
}

// workerState is the state, with an order it does not show yet.
func workerState(w *manager.Worker) string {
	state := string(w.State)
	switch {
	case w.Order == manager.OrderStop && w.State.Alive():
		state += " (stop ordered)"
	case w.Order == manager.OrderDrain && w.State != manager.WorkerDraining && w.State != manager.WorkerDrained:
		state += " (drain ordered)"
	}
	return state
}

// age is for people.
func age(d time.Duration) string {
	precision := 100 * time.Millisecond
	if d >= time.Minute {
		precision = time.Second
	}
	return d.Round(precision).String() + " ago"
}
