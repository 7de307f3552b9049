package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/cli"
	"github.com/tdf-go/tdf/manager"
)

// output is the verb logs with its flags.
type output struct {
	round  int
	stderr bool
	json   *bool
}

func (a *app) logs() *cobra.Command {
	o := &output{}
	cmd := &cobra.Command{
		Use: "logs ID", Short: "Write what a round of a task wrote, byte for byte",
		Long: "logs writes what the last round of a task wrote to stdout. On a terminal, control characters\n" +
			"are shown escaped; into a file or a pipe every byte is written as it is.",
		Args: cobra.ExactArgs(1), RunE: a.withManager(false, noOptions, o.do),
	}
	cmd.Flags().IntVar(&o.round, "round", -1, "number of the round, from 0 (default: the last one begun)")
	cmd.Flags().BoolVar(&o.stderr, "stderr", false, "what it wrote to stderr, or what TDF says went wrong")
	o.json = jsonFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("stderr", "json") // the JSON value has both
	return cmd
}

func (o *output) do(ctx context.Context, s *session) error {
	if s.cmd.Flags().Changed("round") && o.round < 0 {
		return cli.Usagef("--round %d is negative; rounds count from 0", o.round)
	}
	task, err := s.readTask(ctx)
	if err != nil {
		return err
	}
	r, err := o.pick(task)
	if err != nil {
		return err
	}
	if *o.json {
		return cli.WriteJSON(s.out, map[string]any{
			"id": task.ID, "round": r.Number, "output": r.Output, "error": r.Error,
		})
	}
	text := r.Output
	if o.stderr {
		text = r.Error
	}
	if cli.IsTerminal(s.out) {
		text = cli.SafeLines(text)
	}
	if _, err := io.WriteString(s.out, text); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// pick finds the round asked for.
func (o *output) pick(t *manager.Task) (manager.Round, error) {
	if o.round < 0 {
		if r := t.Last(); r.Number >= 0 {
			return r, nil
		}
		return manager.Round{}, fmt.Errorf("task %d has not been run yet (it is %s)", t.ID, t.State)
	}
	rounds := t.Rounds()
	for _, r := range rounds {
		if r.Number == o.round {
			return r, nil
		}
	}
	return manager.Round{}, cli.WithCode(cli.ExitUsage,
		fmt.Errorf("task %d has no round %d; it has %d, counted from 0", t.ID, o.round, len(rounds)))
}
