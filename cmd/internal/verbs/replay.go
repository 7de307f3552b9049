package verbs

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// replaying is the verb replay with its flags.
type replaying struct {
	round           int
	timeout         string
	noWait, compare bool
}

func (a *app) replay() *cobra.Command {
	r := &replaying{}
	cmd := withJSON(withDryRun(&cobra.Command{
		Use: "replay ID", Short: "Repeat a round of an ended task, and compare the outputs",
		Long: "replay opens a task that repeats a round of an ended task, with the same content of the program if\n" +
			"its hash was recorded. It waits for the end and compares output, error and exit code. It ends with 0\n" +
			"if they are equal, with 1 if they differ or one was not kept, and with 4 if the timeout came first.",
		Example: "  tdf-manager replay 7\n  tdf-manager replay 7 --round 0 --timeout 10m\n" +
			"  tdf-manager replay 7 --no-wait\n  tdf-manager replay --compare 12",
		Args: cobra.ExactArgs(1), RunE: a.withManager(r.do),
	}))
	flags := cmd.Flags()
	flags.IntVar(&r.round, "round", manager.LastRound, "number of the round, from 0 (default: the last one begun)")
	flags.Lookup("round").DefValue = "0" // the text says it
	flags.StringVar(&r.timeout, "timeout", "", "longest time to wait, such as 90 or 1h30m")
	flags.BoolVar(&r.noWait, "no-wait", false, "only open the task and print its id")
	flags.BoolVar(&r.compare, "compare", false, "open nothing, and compare the replay ID with its original")
	for _, other := range []string{roundField, "timeout", "no-wait", dryRunName} {
		cmd.MarkFlagsMutuallyExclusive("compare", other)
	}
	cmd.MarkFlagsMutuallyExclusive("no-wait", "timeout")
	return cmd
}

func (r *replaying) do(ctx context.Context, s *session) error {
	if s.cmd.Flags().Changed("round") && r.round < 0 {
		return cli.Usagef("--round %d is negative; rounds count from 0", r.round)
	}
	limit, err := answer.Span("timeout", r.timeout)
	if err != nil {
		return err
	}
	id, err := bulk.ParseID(s.args[0], bulk.Newest(ctx, s.manager))
	if err != nil {
		return err
	}
	if r.compare {
		return r.finish(ctx, s, id, false)
	}
	replay, err := s.manager.Replay(ctx, id, r.round, s.change())
	if err != nil || s.dryRun || r.noWait {
		return r.opened(s, id, replay, err)
	}
	if !s.json {
		s.note("opened task %d; waiting for it", replay)
	}
	within, cancel := limited(ctx, limit)
	defer cancel()
	_, err = s.manager.Wait(within, []int64{replay}, nil)
	late := err != nil && timedOut(within)
	if err != nil && !late {
		return fmt.Errorf("%w; task %d goes on: compare it with %s", err, replay, s.command("replay --compare %d", replay))
	}
	return r.finish(ctx, s, replay, late)
}

// opened says what was opened, or would be.
func (r *replaying) opened(s *session, id, replay int64, err error) error {
	if err != nil {
		return err
	}
	return s.result(answer.Replayed{ID: id, Replay: replay, DryRun: s.dryRun}, func() {
		if s.dryRun {
			s.printf("would run task %d once more\n", id)
		} else {
			s.printf("opened task %d; compare it with: %s\n", replay, s.command("replay --compare %d", replay))
		}
	})
}

// finish prints the comparison and makes the exit code.
func (r *replaying) finish(ctx context.Context, s *session, id int64, timedOut bool) error {
	c, err := s.manager.CompareReplay(ctx, id)
	if err != nil {
		return err
	}
	err = s.result(answer.Compared{Comparison: c, Same: c.Same(), TimedOut: timedOut}, func() { printComparison(s, &c, timedOut) })
	if err != nil {
		return err
	}
	return waitCode(timedOut, !c.Same())
}

func printComparison(s *session, c *manager.Comparison, timedOut bool) {
	if !c.Ended {
		if timedOut {
			s.printf("the wait timed out: ")
		}
		s.printf("task %d, which repeats round %d of task %d, has not ended yet; see %s\n",
			c.Replay, c.Round, c.ID, s.command("replay --compare %d", c.Replay))
		return
	}
	verdict := "the same"
	switch {
	case c.Output == manager.Differs || c.Error == manager.Differs || c.Exit == manager.Differs:
		verdict = "NOT THE SAME"
	case !c.Same():
		verdict = "not known to be the same"
	}
	s.printf("task %d is a replay of round %d of task %d: %s\n", c.Replay, c.Round, c.ID, verdict)
	table := s.out.Table("", "VERDICT", "THEN", "NOW")
	a, b := c.First, c.Second
	if b == nil { // it has ended without having run
		b = &task.Round{Dropped: true}
	}
	table.Row("output", c.Output, hashText(a.OutputSHA256()), hashText(b.OutputSHA256()))
	table.Row("error", c.Error, hashText(a.ErrorSHA256()), hashText(b.ErrorSHA256()))
	table.Row("exit", c.Exit, exitText(a), exitText(b))
	table.Row("program", c.Program, hashText(a.ProgramSHA256), hashText(b.ProgramSHA256))
	table.Row(nodeField, "", dashText(a.Node), dashText(b.Node))
	table.Flush()
}

// hashText is the beginning of a hash, enough to tell two apart.
func hashText(hash string) string {
	const digits = 16
	return dashText(hash[:min(len(hash), digits)])
}

func exitText(r *task.Round) string {
	switch {
	case r.Signal != "":
		return "signal " + r.Signal
	case r.ExitCode != nil:
		return strconv.Itoa(*r.ExitCode)
	default:
		return "-"
	}
}
