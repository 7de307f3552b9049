package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// counting is the verb stats with its flags.
type counting struct {
	watch bool
	json  *bool
}

func (a *app) stats() *cobra.Command {
	c := &counting{}
	cmd := &cobra.Command{
		Use: "stats", Short: "Count the tasks in each state", Args: cobra.NoArgs, RunE: a.withStore(c.do),
	}
	cmd.Flags().BoolVar(&c.watch, "watch", false, "go on counting until stopped: a line for each change")
	c.json = jsonFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("watch", "json")
	return cmd
}

func (c *counting) do(ctx context.Context, s *session) error {
	if c.watch {
		return watch(ctx, s)
	}
	counts, err := s.store.Count(ctx)
	if err != nil {
		return err
	}
	all := manager.Counts(counts)
	if *c.json {
		return cli.WriteJSON(s.out, map[string]any{
			"namespace": s.store.Namespace(), "states": counts, "total": all.Total(), "left": all.Left(),
		})
	}
	table := cli.NewTable(s.out, "STATE", "TASKS")
	for _, state := range statemachine.States() {
		table.Row(state, counts[state])
	}
	table.Row("total", all.Total())
	table.Row("left", all.Left())
	return table.Flush()
}

// watchPoll is how often the counts are read where nothing tells of a change.
const watchPoll = time.Second

// watchGap is the shortest time between two lines.
const watchGap = 200 * time.Millisecond

// watch writes a line whenever the counts have changed, on a terminal over the
// one before.
func watch(ctx context.Context, s *session) error {
	changes, stop := s.store.Watch(ctx)
	defer stop()
	format := "%s\n"
	if cli.IsTerminal(s.out) {
		format = "\r\x1b[K%s"
	}
	for before := ""; ; {
		counts, err := s.store.Count(ctx)
		if err != nil {
			return err
		}
		if line := countsLine(counts); line != before {
			before = line
			if err := printf(s.out, format, line); err != nil {
				return err
			}
		}
		if err := nextLook(ctx, changes); err != nil {
			return err
		}
	}
}

// nextLook waits until it is worth counting again.
func nextLook(ctx context.Context, changes <-chan struct{}) error {
	select {
	case <-ctx.Done():
	case <-changes:
	case <-time.After(watchPoll):
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("stats: %w", context.Cause(ctx))
	case <-time.After(watchGap):
		return nil
	}
}

// countsLine names the states that have tasks.
func countsLine[N int | int64](counts map[statemachine.State]N) string {
	var parts []string
	for _, state := range statemachine.States() {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", state, n))
		}
	}
	if len(parts) == 0 {
		return "no tasks"
	}
	return strings.Join(parts, "  ")
}
