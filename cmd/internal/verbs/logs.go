package verbs

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

// output is the verb logs with its flags.
type output struct {
	round     int
	stderr    bool
	following bool
	json      *bool
}

func (a *app) logs() *cobra.Command {
	o := &output{}
	cmd := &cobra.Command{
		Use: "logs ID", Short: "Write what a round of a task wrote, byte for byte",
		Long: "logs writes what the last round of a task wrote to stdout. On a terminal, control characters\n" +
			"are shown escaped; into a file or a pipe every byte is written as it is.\n\n" +
			"With --follow it goes on while the program writes, on whatever host that is, waits for a task that\n" +
			"has not begun, goes on with the next round if there is one, and ends with the task. Where a program\n" +
			"writes faster than it can be sent, a line says how much was left out.",
		Example: "  tdf-manager logs 7\n  tdf-manager logs 7 --stderr --round 0\n  tdf-manager logs -f 7",
		Args:    cobra.ExactArgs(1),
	}
	dirs := archiveFlag(cmd)
	read, follow := a.withTask(dirs, o.do), a.withManager(false, noOptions, o.follow)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("round") && o.round < 0 {
			return cli.Usagef("--round %d is negative; rounds count from 0", o.round)
		}
		if o.following {
			return follow(cmd, args)
		}
		return read(cmd, args)
	}
	flags := cmd.Flags()
	flags.IntVar(&o.round, "round", -1, "number of the round, from 0 (default: the last one begun); with --follow the present one, to its end")
	flags.BoolVar(&o.stderr, "stderr", false, "what it wrote to stderr, or what TDF says went wrong")
	flags.BoolVarP(&o.following, "follow", "f", false, "go on while the program writes, until the task has ended")
	o.json = jsonFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("stderr", "json") // the JSON value has both
	cmd.MarkFlagsMutuallyExclusive("follow", "json")
	cmd.MarkFlagsMutuallyExclusive("follow", archiveName)
	return cmd
}

func (o *output) do(_ context.Context, s *session, task *manager.Task) error {
	r, err := o.pick(task)
	if err != nil {
		return err
	}
	if *o.json {
		return cli.WriteJSON(s.out, map[string]any{
			"id": task.ID, roundField: r.Number, outputStream: r.Output, errorStream: r.Error, "stderr": r.Stderr,
			"dropped": r.Dropped,
		})
	}
	if r.Dropped {
		s.warn("what round %d of task %d wrote is kept no longer (keep_rounds)", r.Number, task.ID)
	}
	text := r.Output
	if o.stderr {
		text = cmp.Or(r.Error, r.Stderr)
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
