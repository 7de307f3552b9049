package verbs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// waiting is the verb wait with its flags.
type waiting struct {
	choice  choice
	timeout string
}

func (a *app) wait() *cobra.Command {
	w := &waiting{}
	cmd := withJSON(&cobra.Command{
		Use: "wait [TASKS]", Short: "Wait until tasks have ended",
		Long: "wait waits until tasks have ended; without names it waits for all existing tasks. A task that was\n" +
			"retried counts as what its retry ends in. It ends with 1 if a task did not succeed or the namespace\n" +
			"was flushed, and with 4 if the timeout came first. If a plan is still being built, wait says so and\n" +
			"keeps waiting for its tasks. At its end it names on stderr the tasks that lost a part of their\n" +
			"output or files.\n\n" +
			selectorHelp,
		Example: "  tdf-manager wait 3-9,12\n  tdf-manager wait all --timeout 1h30m\n  tdf-manager wait --queue nightly",
		RunE:    a.withManager(w.do),
	})
	w.choice.flags(cmd)
	cmd.Flags().StringVar(&w.timeout, "timeout", "", "longest time to wait, such as 90 or 1h30m")
	return cmd
}

// errTimeout is the cause of a wait that took too long.
var errTimeout = errors.New("timeout")

// limited bounds a wait, if the limit is above 0.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, errTimeout)
}

func timedOut(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errTimeout) }

// waitCode is the exit code of a wait.
func waitCode(timedOut, failed bool) error {
	switch {
	case timedOut:
		return cli.Exit(cli.ExitTimeout)
	case failed:
		return cli.Exit(cli.ExitTaskFailed)
	default:
		return nil
	}
}

func (w *waiting) do(ctx context.Context, s *session) error {
	limit, err := answer.Span("timeout", w.timeout)
	if err != nil {
		return err
	}
	sel, err := w.choice.selection(ctx, s)
	if err != nil {
		return err
	}
	if w.choice.OnlyJob() {
		return waitJob(ctx, s, sel.Plan, limit)
	}
	ids, err := w.ids(ctx, s, sel)
	if err != nil {
		return err
	}
	return waitFor(ctx, s, ids, limit)
}

// waitFor waits for tasks, nil for all, as long as limit says if that is above 0.
func waitFor(ctx context.Context, s *session, ids []int64, limit time.Duration) error {
	within, cancel := limited(ctx, limit)
	defer cancel()
	progress, told := &waitProgress{began: time.Now()}, map[task.PlanID]bool{}
	display := newDisplay(ctx, s, progress)
	report := func(p manager.Progress) {
		progress.update(p)
		sayNotReady(s, p.NotReady, told)
	}
	var p manager.Progress
	var err error
	if ids == nil {
		p, err = s.manager.WaitAll(within, report)
	} else {
		p, err = s.manager.Wait(within, ids, report)
	}
	display.close()
	late := err != nil && timedOut(within)
	if err != nil && !late {
		return err
	}
	reached, err := answer.WaitedFor(ctx, s.manager, p, late)
	return finishWait(s, reached, err)
}

// sayNotReady names, once, each plan that nobody makes ready any more: what belongs to it never ends by itself.
func sayNotReady(s *session, plans []task.PlanID, told map[task.PlanID]bool) {
	for _, id := range plans {
		if !told[id] {
			told[id] = true
			s.warn("waiting for tasks of plan %d, which was not made to its end, so nothing of it runs; "+
				"to finish it, submit it again with its --key; to be rid of it: %s", id, s.command("plan cancel %d", id))
		}
	}
}

// ids are the tasks to wait for; nil means all.
func (w *waiting) ids(ctx context.Context, s *session, sel manager.Selection) ([]int64, error) {
	ids, err := answer.WaitIDs(ctx, s.manager, &w.choice.Filter, sel)
	if err == nil && ids != nil && len(ids) == 0 {
		err = w.choice.nothing(ctx, s)
	}
	return ids, err
}

// finishWait prints what a wait has come to, and turns it into an exit code.
func finishWait(s *session, w *answer.Waited, err error) error {
	if err != nil {
		return err
	}
	if err = s.result(w, func() { printFinish(s, w) }); err != nil {
		return err
	}
	if !s.json {
		s.noteIDs(w.Cut, cutText)
	}
	return waitCode(w.TimedOut, w.Unsuccessful > 0)
}

// cutText tells of tasks that task.Task.Cut is about.
const cutText = "lost a part of their output or files (ls marks them as cut, show says what; " +
	"raise [worker] output_max, or submit --on-cut fail)"

func printFinish(s *session, w *answer.Waited) {
	if w.TimedOut {
		s.printf("the wait timed out; ")
	}
	s.printf("%d of %d tasks have ended: %s\n", w.Done, w.Total, countsLine(w.States))
	printFailures(s, w.First, w.Unsuccessful)
	if len(w.First) > 0 {
		first := w.First[0].ID
		s.printf("\nsee more with: %s; %s\n", s.command("show %d", first), s.command("logs %d --stderr", first))
	}
}

// onStderr says why a task failed although its program ended well.
const onStderr = "exit status 0, but text on stderr, which --fail-on exit accepts"

// printFailures prints the first of all failures.
func printFailures(s *session, failures []answer.Failure, all int) {
	for _, f := range failures {
		s.printf("\ntask %d %s\n%s", f.ID, f.State, indent(f.Error))
		if f.OnStderr {
			s.printf("(%s)\n", onStderr)
		}
	}
	if more := all - len(failures); more > 0 {
		s.printf("\nand %d more\n", more)
	}
}

// waitProgress is how far a wait is.
type waitProgress struct {
	began       time.Time
	first, last atomic.Pointer[manager.Progress]
}

func (w *waitProgress) update(p manager.Progress) {
	w.first.CompareAndSwap(nil, &p)
	w.last.Store(&p)
}

func (*waitProgress) look(context.Context) {}

func (w *waitProgress) lines(terminal bool) []string {
	p := w.last.Load()
	if p == nil {
		return nil
	}
	return []string{progressLine(p, w.first.Load().Done, time.Since(w.began), terminal)}
}

// progressLine says how far the tasks are, how fast, and how long it will take.
func progressLine(p *manager.Progress, first int, elapsed time.Duration, terminal bool) string {
	rate := float64(p.Done-first) / elapsed.Seconds()
	line := fmt.Sprintf("%s  %s  %.1f tasks/s", doneText(int64(p.Done), int64(p.Total), terminal),
		countsLine(p.States)+runningText(p.Running), rate)
	if left := p.Total - p.Done; rate > 0 && left > 0 {
		line += "  " + time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second).String() + " left"
	}
	return line
}

// runningText says how far some of the running tasks are.
func runningText(running []manager.RunningTask) string {
	const most, width = 2, 30
	text := ""
	for i, t := range running {
		if i == most {
			return text + "  ..."
		}
		text += fmt.Sprintf("  task %d: %s", t.ID, cli.Safe(clean.Shorten(t.Progress.String(), width)))
	}
	return text
}

// jobProgress is how far a job is, in the words of a wait.
type jobProgress struct {
	waitProgress

	s       *session
	id      task.PlanID
	running atomic.Int64
	plan    atomic.Pointer[task.Plan]
	told    sync.Once
}

// look counts what runs. While Redis does not answer, what was counted last stays.
func (w *jobProgress) look(ctx context.Context) {
	w.sayOpening(ctx)
	if n, err := w.s.manager.Underway(ctx); err == nil {
		w.running.Store(n[w.id])
	}
}

// sayOpening tells, once, that nothing more happens before the job is made to its end, which nobody seems to do.
func (w *jobProgress) sayOpening(ctx context.Context) {
	p := w.plan.Load()
	if p == nil || p.Left > 0 && !plans.Gated(&p.PlanSpec) {
		return
	}
	if now, err := w.s.manager.Now(ctx); err != nil || !p.HalfBuilt(now) {
		return
	}
	w.told.Do(func() {
		w.s.warn("nothing of %s runs, and its submission has not ended; to finish it, submit it again with its --request-key",
			plans.JobName(w.id))
	})
}

// waitJob waits until all tasks of a job have ended, as long as limit says if that is above 0. It costs the same whatever their number.
func waitJob(ctx context.Context, s *session, id task.PlanID, limit time.Duration) error {
	within, cancel := limited(ctx, limit)
	defer cancel()
	progress := &jobProgress{waitProgress: waitProgress{began: time.Now()}, s: s, id: id}
	display := newDisplay(ctx, s, progress)
	p, err := s.manager.WaitPlan(within, id, func(p *task.Plan) {
		progress.update(answer.JobProgress(p, progress.running.Load()))
		progress.plan.Store(p)
		progress.sayOpening(ctx)
	})
	display.close()
	late := err != nil && timedOut(within)
	if err != nil && !late {
		return s.noJob(id, err)
	}
	reached, err := answer.WaitedForJob(ctx, s.manager, id, p, late)
	return finishWait(s, reached, s.noJob(id, err))
}
