package main

import (
	"cmp"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

func printComparison(s *session, c *manager.Comparison, timedOut bool) error {
	if !c.Ended {
		text := "task %d, which repeats round %d of task %d, has not ended yet; see tdf-manager replay --compare %[1]d\n"
		if timedOut {
			text = "the wait timed out: " + text
		}
		return printf(s.out, text, c.Replay, c.Round, c.ID)
	}
	verdict := "the same"
	switch {
	case c.Output == manager.Differs || c.Error == manager.Differs || c.Exit == manager.Differs:
		verdict = "NOT THE SAME"
	case !c.Same():
		verdict = "not known to be the same"
	}
	err := printf(s.out, "task %d is a replay of round %d of task %d: %s\n", c.Replay, c.Round, c.ID, verdict)
	if err != nil {
		return err
	}
	table := cli.NewTable(s.out, "", "VERDICT", "THEN", "NOW")
	a, b := &c.First, &c.Second
	table.Row("output", c.Output, hashText(a.OutputSHA256()), hashText(b.OutputSHA256()))
	table.Row("error", c.Error, hashText(a.ErrorSHA256()), hashText(b.ErrorSHA256()))
	table.Row("exit", c.Exit, exitText(a), exitText(b))
	table.Row("program", c.Program, hashText(a.ProgramSHA256), hashText(b.ProgramSHA256))
	table.Row(nodeField, "", dashText(a.Node), dashText(b.Node))
	return table.Flush()
}

// hashText is the beginning of a hash, enough to tell two apart.
func hashText(hash string) string {
	const digits = 16
	return dashText(hash[:min(len(hash), digits)])
}

func exitText(r *manager.Round) string {
	if r.Signal != "" {
		return "signal " + r.Signal
	}
	return dashText(r.ExitCode)
}

func comparisonObject(c *manager.Comparison, timedOut bool) map[string]any {
	side := func(r *manager.Round) map[string]any {
		return map[string]any{
			"output_sha256": r.OutputSHA256(), "error_sha256": r.ErrorSHA256(), "exit_code": r.ExitCode, "signal": r.Signal,
			"program_sha256": r.ProgramSHA256, nodeField: r.Node, "worker": r.Worker,
		}
	}
	return map[string]any{
		"id": c.ID, roundField: c.Round, "replay": c.Replay, "ended": c.Ended, "timed_out": timedOut, "same": c.Same(),
		"output": cmp.Or(c.Output, manager.Unknown), "error": cmp.Or(c.Error, manager.Unknown),
		"exit": cmp.Or(c.Exit, manager.Unknown), programField: cmp.Or(c.Program, manager.Unknown),
		"first": side(&c.First), "second": side(&c.Second),
	}
}
