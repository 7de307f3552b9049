package verbs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/ops/top"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

func (a *app) stats() *cobra.Command {
	watching := false
	cmd := withJSON(&cobra.Command{
		Use: "stats", Short: "Count the tasks in each state", Args: cobra.NoArgs,
		Long: "stats counts the tasks in each state. The column ENDED counts those that came to each outcome since\n" +
			"their queues were made, also of those that have left Redis. A task that was retried is counted as\n" +
			"retried there, and no longer by how it ended. Ends that clients of the original wrote are not in ENDED.",
		RunE: a.withManager(func(ctx context.Context, s *session) error {
			if watching {
				return watch(ctx, s)
			}
			return count(ctx, s)
		}),
	})
	cmd.Flags().BoolVar(&watching, "watch", false, "keep counting until stopped, with a line for each change")
	cmd.MarkFlagsMutuallyExclusive("watch", jsonName)
	return cmd
}

func count(ctx context.Context, s *session) error {
	t, err := answer.Count(ctx, s.manager)
	if err != nil {
		return err
	}
	return s.result(t, func() {
		table := s.out.Table("STATE", "TASKS", "ENDED")
		for _, state := range statemachine.States() {
			soFar := ""
			if state.IsOutcome() {
				soFar = strconv.FormatInt(t.Ended[state], 10)
			}
			table.Row(state, t.States[state], soFar)
		}
		table.Row("retried", "", t.Retried)
		table.Row("total", t.Total, "")
		table.Row("left", t.Left, "")
		table.Flush()
	})
}

// endedText says how tasks have ended; empty if none has.
func endedText(ended manager.Counts, retried int64) string {
	text := statesText(ended)
	if retried > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s  retried %d", text, retried))
	}
	return text
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
	if cli.IsTerminal(s.cmd.OutOrStdout()) {
		format = "\r\x1b[K%s"
	}
	for before := ""; ; {
		t, err := answer.Count(ctx, s.manager)
		if err != nil {
			return err
		}
		line := countsLine(t.States)
		if text := endedText(t.Ended, t.Retried); text != "" {
			line += "  (ended: " + text + ")"
		}
		if line != before {
			before = line
			s.printf(format, line)
		}
		if s.out.Err() != nil {
			return s.out.Err()
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
	return cmp.Or(statesText(counts), "no tasks")
}

// statesText is countsLine, and empty where there are no tasks.
func statesText[N int | int64](counts map[statemachine.State]N) string {
	var parts []string
	for _, state := range statemachine.States() {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", state, n))
		}
	}
	return strings.Join(parts, "  ")
}

// topFailures is how many of the newest failures the screen has.
const topFailures = 50

func (a *app) top() *cobra.Command {
	interval, once := "", false
	cmd := &cobra.Command{
		Use: "top", Short: "Watch queues, workers, rates and failures on a live screen", Args: cobra.NoArgs,
		Long: "top shows the namespace on the terminal until q is pressed; ? shows the other keys. Without a\n" +
			"terminal, or with --once, it prints one snapshot as plain tables.",
		Example: "  tdf-manager top\n  tdf-manager top --interval 500ms\n  tdf-manager top --once",
	}
	cmd.Flags().StringVar(&interval, "interval", "",
		fmt.Sprintf("time between two refreshes (default %v, at least %v)", top.DefaultInterval, top.MinInterval))
	cmd.Flags().BoolVar(&once, "once", false, "print one snapshot and end")
	cmd.RunE = a.withManager(func(ctx context.Context, s *session) error {
		every, err := parseInterval(interval)
		if err != nil {
			return err
		}
		return top.Run(ctx, top.Options{
			In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Interval: every, Once: once,
			Source: func(ctx context.Context) (top.Snapshot, error) {
				o, err := s.manager.Overview(ctx, topFailures)
				return snapshot(o, s.cfg.Redis.String()), err
			},
		})
	})
	return cmd
}

func parseInterval(text string) (time.Duration, error) {
	if text == "" {
		return top.DefaultInterval, nil
	}
	d, err := answer.Span("interval", text)
	if err != nil || d < top.MinInterval {
		return 0, cli.Usagef("--interval %q: write a duration of at least %v, such as 2s", text, top.MinInterval)
	}
	return d, nil
}

// snapshot is what the screen shows of an overview.
func snapshot(o manager.Overview, redis string) top.Snapshot {
	done, failed := ended(o.Ended())
	done += answer.Retried(o.Queues)
	o.Failures = slices.DeleteFunc(o.Failures, func(f manager.Failure) bool { return calledOff(f.Task.End()) })
	return top.Snapshot{Overview: o, Redis: redis, Done: done, Failed: failed}
}

// calledOff reports whether a task ended because somebody wanted it to, which is
// no failure.
func calledOff(outcome statemachine.State) bool {
	return outcome == statemachine.Cancelled || outcome == statemachine.Terminated
}

// ended sums up outcomes: of all tasks, and of those that failed.
func ended(counts map[statemachine.State]int64) (done, failed int64) {
	for outcome, n := range counts {
		done += n
		if outcome != statemachine.Succeeded && !calledOff(outcome) {
			failed += n
		}
	}
	return done, failed
}
