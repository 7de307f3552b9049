package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/task"
)

// ordering is one of the verbs drain, undrain and stop with its flags.
type ordering struct {
	order task.WorkerCommand
	wait  string
}

func (a *app) drain() *cobra.Command {
	o := &ordering{order: task.CommandDrain}
	cmd := a.ordering(o, "drain", "Let workers finish their tasks, and claim no more",
		"  tdf-manager worker drain w1\n  tdf-manager worker drain w1 w2 --wait=1h\n  tdf-manager worker drain all --dry-run")
	cmd.Long = "drain lets workers finish their tasks; they claim no more. The order stays with the name, also over\n" +
		"a restart, until undrain revokes it. all means all workers that have not stopped."
	o.waitFlag(cmd, "drained")
	return cmd
}

func (a *app) undrain() *cobra.Command {
	return a.ordering(&ordering{order: task.NoCommand}, "undrain", "Revoke the order to drain",
		"  tdf-manager worker undrain w1\n  tdf-manager worker undrain all")
}

func (a *app) stop() *cobra.Command {
	o := &ordering{order: task.CommandStop}
	cmd := a.ordering(o, "stop", "Stop workers gracefully",
		"  tdf-manager worker stop w1\n  tdf-manager worker stop all --wait=5m")
	cmd.Long = "stop ends workers as SIGTERM does: programs may go on for drain_timeout, then their tasks are handed\n" +
		"back. A worker that is started again claims again."
	o.waitFlag(cmd, "stopped")
	return cmd
}

func (a *app) ordering(o *ordering, verb, short, example string) *cobra.Command {
	cmd := withJSON(&cobra.Command{
		Use: verb + " NAME...", Short: short, Example: example, Args: cobra.MinimumNArgs(1),
		RunE: a.withManager(o.do),
	})
	cmd.Flags().BoolP(dryRunName, "n", false, "only print what would be ordered")
	return cmd
}

func (o *ordering) waitFlag(cmd *cobra.Command, until string) {
	cmd.Flags().StringVar(&o.wait, "wait", "", "wait until they are "+until+"; --wait=DURATION waits at most that long, then ends with 4")
	cmd.Flags().Lookup("wait").NoOptDefVal = "inf"
	cmd.MarkFlagsMutuallyExclusive("wait", dryRunName)
}

// ordered is what became of the order to one worker, also as JSON.
type ordered struct {
	answer.Ordered

	// Done and TimedOut are there where the verb waits, Is once the wait is over.
	Done     *bool            `json:"done,omitempty"`
	TimedOut *bool            `json:"timed_out,omitempty"`
	Is       task.WorkerState `json:"is,omitempty"`

	// after is the worker as it was when the wait for it was over.
	after *task.Worker
}

func (o *ordering) do(ctx context.Context, s *session) error {
	limit, err := answer.Span("--wait", o.wait)
	if err != nil {
		return err
	}
	workers, err := s.manager.Workers(ctx)
	if err != nil {
		return err
	}
	picked, err := s.pick(s.args, workers, o.order)
	if err != nil {
		return err
	}
	given, err := answer.Orders(ctx, s.manager, picked, o.order, s.dryRun)
	if err != nil {
		return err
	}
	list := make([]ordered, len(given))
	for i := range given {
		list[i].Ordered = given[i]
	}
	if limit == 0 {
		return o.finish(s, list, false)
	}
	o.report(s, list)
	return o.await(ctx, s, list, limit)
}

// orderPoll is how often the registry is read while a verb waits.
const orderPoll = 500 * time.Millisecond

// await waits until the workers have done as ordered.
func (o *ordering) await(ctx context.Context, s *session, list []ordered, limit time.Duration) error {
	within, cancel := limited(ctx, limit)
	defer cancel()
	for said := ""; ; {
		if s.out.Err() != nil {
			return nil // finish says it; nobody reads what follows
		}
		err := o.look(within, s, list)
		if err != nil && !errors.Is(err, task.ErrUnreachable) && within.Err() == nil {
			return err
		}
		left := stillBusy(list)
		if left == "" {
			return o.finish(s, list, false)
		}
		if left != said {
			said = left
			s.note("waiting for %s", cli.Safe(left))
		}
		select {
		case <-within.Done():
		case <-time.After(orderPoll):
			continue
		}
		if !timedOut(within) {
			return fmt.Errorf("wait: %w", context.Cause(within))
		}
		s.note("the wait timed out")
		return o.finish(s, list, true)
	}
}

// look reads the registry, and notes and reports who is done.
func (o *ordering) look(ctx context.Context, s *session, list []ordered) error {
	workers, err := s.manager.Workers(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		r := &list[i]
		now, _ := search(workers, r.Name, func(w *task.Worker) string { return w.Name })
		if r.after != nil || now != nil && !o.done(r, now) {
			continue
		}
		if r.after = now; now == nil { // the namespace was flushed
			r.after = &task.Worker{Registration: r.Before.Registration, State: task.WorkerStopped}
		}
		if !s.json {
			s.printf("%s: %s\n", cli.Safe(r.Name), o.doneText(r))
		}
	}
	return nil
}

// done says whether the worker has done as ordered, or is gone. What a drained
// worker said of itself before it knew of the order does not count, nor does its
// word while it holds tasks other than those in stuck slots.
func (o *ordering) done(r *ordered, w *task.Worker) bool {
	switch {
	case !w.State.Alive():
		return true
	case o.order == task.CommandStop:
		return w.Incarnation != r.Before.Incarnation
	default:
		heard := !r.Ordered.Ordered || w.Heartbeat.After(r.Before.Heartbeat)
		return w.State == task.WorkerDrained && heard && len(w.Tasks) <= w.Stuck
	}
}

func (o *ordering) doneText(r *ordered) string {
	switch {
	case r.after.State.Alive() && o.order == task.CommandStop:
		return "stopped, and started again since"
	case r.after.State == task.WorkerLost:
		return "lost; its tasks went back"
	case r.after.Stuck > 0:
		return fmt.Sprintf("%s, except for %d stuck slots", r.after.State, r.after.Stuck)
	default:
		return string(r.after.State)
	}
}

// stillBusy names the workers that are not done.
func stillBusy(list []ordered) string {
	var names []string
	for i := range list {
		if list[i].after == nil {
			names = append(names, list[i].Name)
		}
	}
	return strings.Join(names, ", ")
}

// finish reports and makes the exit code.
func (o *ordering) finish(s *session, list []ordered, timedOut bool) error {
	if s.json {
		o.waited(list, timedOut)
		s.out.JSON(list)
	} else if o.wait == "" {
		o.report(s, list)
	}
	return waitCode(timedOut, slices.ContainsFunc(list, func(r ordered) bool {
		return r.Refused || r.after != nil && r.after.State == task.WorkerLost
	}))
}

// waited notes what the wait, if there was one, has come to.
func (o *ordering) waited(list []ordered, timedOut bool) {
	for i := range list {
		r, done := &list[i], list[i].after != nil
		if o.wait != "" {
			r.Done, r.TimedOut = &done, new(timedOut && !done)
		}
		if done {
			r.Is = r.after.State
		}
	}
}

// report says per worker what it was and what was ordered.
func (o *ordering) report(s *session, list []ordered) {
	if s.json {
		return
	}
	if len(list) == 0 {
		s.printf("there is no worker to %s\n", s.cmd.Name())
	}
	for i := range list {
		r := &list[i]
		text := r.Note
		switch {
		case r.Note == "" && s.dryRun:
			text = fmt.Sprintf("would %s; it is %s", s.cmd.Name(), busyText(&r.Before))
		case r.Ordered.Ordered:
			text = fmt.Sprintf("%s ordered; it was %s", s.cmd.Name(), busyText(&r.Before))
		}
		s.printf("%s: %s\n", cli.Safe(r.Name), text)
	}
}

func busyText(w *task.Worker) string {
	text := string(w.State)
	if w.State.Alive() {
		text += fmt.Sprintf(", %d of %d slots busy", w.Busy, w.Slots)
	}
	if w.Stuck > 0 && w.State.Alive() {
		text += fmt.Sprintf(", %d stuck", w.Stuck)
	}
	return text
}
