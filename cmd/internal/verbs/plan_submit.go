package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// planSubmission is the verb plan submit with its flags, which plan run has too.
type planSubmission struct {
	source planSource
	key    string
}

func (a *app) planSubmit() *cobra.Command {
	sub := &planSubmission{}
	cmd := withJSON(&cobra.Command{
		Use: "submit FILE", Short: "Make a plan from a file, start it, and print its id",
		Long: "submit makes a plan from a plan file (- is stdin) and starts it. No task runs before the whole plan\n" +
			"is made. With --key, for 24 hours, a repeated submission makes nothing and an interrupted one is\n" +
			"finished; both print the id of the first. Another file, or other parameters, need another key;\n" +
			"start_after and end_before may differ.",
		Example: "  tdf-manager plan submit pipeline.yaml\n" +
			"  tdf-manager plan submit pipeline.yaml -p day=2026-11-21 --key pipeline-2026-11-21",
		RunE: a.withManager(sub.do),
	})
	sub.flags(cmd)
	return cmd
}

func (sub *planSubmission) flags(cmd *cobra.Command) {
	sub.source.flags(withPin(cmd))
	cmd.Flags().StringVar(&sub.key, "key", "", "name of this submission; repeating it makes nothing twice")
}

func (sub *planSubmission) do(ctx context.Context, s *session) error {
	id, err := sub.submit(ctx, s)
	if err != nil {
		return err
	}
	return s.result(&answer.PlanSubmitted{Plan: id, Tasks: len(sub.source.Tasks)}, func() { s.printf("%d\n", id) })
}

// submit makes the plan and lets it run.
func (sub *planSubmission) submit(ctx context.Context, s *session) (task.PlanID, error) {
	if s.cmd.Flags().Changed("key") && sub.key == "" {
		return 0, cli.Usagef("--key is empty; give a name for this submission, or leave it out")
	}
	if err := sub.check(ctx, s); err != nil {
		return 0, err
	}
	key := sub.key
	if key == "" {
		key = conn.NewToken()
	}
	life, err := s.manager.Life(ctx)
	if err != nil {
		return 0, err
	}
	id, opened, err := sub.source.Open(ctx, s.manager, key)
	switch {
	case errors.Is(err, task.ErrRequestKey):
		return 0, usedFor(key, id)
	case err != nil && id == 0:
		return 0, err
	case err != nil:
		return id, halfDone(s, id, key, err)
	}
	s.warnOfLoss(ctx, life, opened, "--key "+cli.Safe(key))
	return id, nil
}

// check reads the file, and looks whether the queues of its tasks are there.
func (sub *planSubmission) check(ctx context.Context, s *session) error {
	now, err := s.manager.Now(ctx)
	if err != nil {
		return err
	}
	if err := sub.source.read(s, now); err != nil {
		return err
	}
	p, checkQueue := sub.source.PlanFile, s.queueCheck(ctx)
	specs := p.All()
	for i := range specs {
		switch err := checkQueue(specs[i].Queue); {
		case errors.Is(err, task.ErrNoQueue):
			return cli.WithCode(cli.ExitUsage, p.At(&specs[i], err))
		case err != nil:
			return err
		}
		err := badSource(specs[i].Source)
		if err == nil {
			err = badStdin(specs[i].Stdin)
		}
		if err != nil {
			return cli.WithCode(cli.ExitUsage, p.At(&specs[i], err))
		}
	}
	if err := sub.source.takeAlong(ctx, s, now); err != nil {
		return err
	}
	return sub.pin(ctx, s)
}

// pin pins the sources before there is a plan that could be left without its tasks.
func (sub *planSubmission) pin(ctx context.Context, s *session) error {
	for _, spec := range sub.source.All() {
		if spec.Source == "" {
			continue
		}
		if _, err := s.pinned(ctx, spec.Source); err != nil {
			err = &statemachine.FieldError{Field: sourceField, Value: clean.Source(spec.Source), Want: "one that can be used: " + err.Error()}
			return cli.WithCode(cli.ExitUsage, sub.source.At(&spec, err))
		}
	}
	return nil
}

func usedFor(key string, plan task.PlanID) error {
	return cli.WithCode(cli.ExitUsage, fmt.Errorf("--key %q was used for plan %d, which has other tasks; "+
		"give another key for another file or other parameters", key, plan))
}

// halfDone says how a plan that was made in part is finished.
func halfDone(s *session, id task.PlanID, key string, err error) error {
	return fmt.Errorf("plan %d was not made to its end, and nothing of it runs: %w; to finish it, repeat it with --key %s; "+
		"to be rid of it: %s", id, s.noPlan(err), cli.Safe(key), s.command("plan cancel %d", id))
}

// planRunning is the verb plan run with its flags.
type planRunning struct {
	planSubmission

	quiet bool
}

func (a *app) planRun() *cobra.Command {
	run := &planRunning{}
	cmd := withJSON(&cobra.Command{
		Use: "run FILE", Short: "Make a plan from a file, let it run, and wait for its end",
		Long: "run submits a plan and waits, with the progress on stderr: the number of tasks in each state, the\n" +
			"running ones, an estimate of the time left, and the critical path, the longest chain of tasks that\n" +
			"have not ended. It ends with 0 if the plan is completed, and with 1 if it has failed, was cancelled\n" +
			"or is held. Interrupted, it leaves the plan running.",
		Example: "  tdf-manager plan run pipeline.yaml -p day=2026-11-21",
		RunE:    a.withManager(run.do),
	})
	run.flags(cmd)
	cmd.Flags().BoolVarP(&run.quiet, "quiet", "q", false, "print the id of the plan only, and no progress")
	cmd.MarkFlagsMutuallyExclusive("quiet", jsonName)
	return cmd
}

func (r *planRunning) do(ctx context.Context, s *session) error {
	id, err := r.submit(ctx, s)
	if err == nil {
		err = r.announce(s, id)
	}
	if err != nil {
		return err
	}
	p, err := waitPlan(ctx, s, id, r.quiet)
	switch {
	case err != nil:
		return fmt.Errorf("plan %d goes on without being watched; see %s: %w", id, s.command("plan show %d", id), err)
	case r.quiet:
		return planCode(p)
	default:
		return finishPlan(ctx, s, p)
	}
}

// announce prints which plan was made.
func (r *planRunning) announce(s *session, id task.PlanID) error {
	switch {
	case s.json:
	case r.quiet:
		s.printf("%d\n", id)
	default:
		s.printf("%s: %s\n", planName(&task.Plan{PlanSpec: task.PlanSpec{Name: r.source.Name}, ID: id}), r.source.Plan)
	}
	return s.out.Err()
}

// errHeld is the cause of a wait that ends because the plan is held.
var errHeld = errors.New("held")

// waitPlan waits until a plan is over or held. It shows the progress unless --quiet is given.
func waitPlan(ctx context.Context, s *session, id task.PlanID, quiet bool) (*task.Plan, error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	show := func(*task.Plan) {}
	if !quiet {
		progress := &planProgress{s: s}
		defer newDisplay(ctx, s, progress).close()
		show = progress.plan.Store
	}
	p, err := s.manager.WaitPlan(within, id, func(p *task.Plan) {
		show(p)
		if p.State == task.PlanHeld {
			cancel(errHeld)
		}
	})
	if errors.Is(context.Cause(within), errHeld) {
		err = nil
	}
	return p, s.noPlan(err)
}

// finishPlan prints how a plan ended and turns it into an exit code.
func finishPlan(ctx context.Context, s *session, p *task.Plan) error {
	culprits, err := planCulprits(ctx, s, p)
	if err != nil {
		return err
	}
	failures, err := answer.Failures(context.WithoutCancel(ctx), s.manager, culprits) // a signal has nothing left to end
	if err != nil {
		return err
	}
	err = s.result(struct {
		*task.Plan

		First []answer.Failure `json:"first_unsuccessful"`
	}{p, failures}, func() { printPlanEnd(s, p, failures, len(culprits)) })
	if err != nil {
		return err
	}
	return planCode(p)
}

// planCode is the exit code for how a plan ended.
func planCode(p *task.Plan) error {
	return waitCode(false, p.State != task.PlanCompleted)
}

// planCulprits returns the tasks that made a plan fail: those that did not succeed,
// were not cancelled because of another task, and have not been retried.
func planCulprits(ctx context.Context, s *session, p *task.Plan) ([]int64, error) {
	if p.State == task.PlanCompleted {
		return nil, nil
	}
	tasks, err := s.view(p.ID).Tasks(context.WithoutCancel(ctx))
	var ids []int64
	for _, t := range tasks {
		if t.End.IsOutcome() && t.End != statemachine.Succeeded && t.DoomedBy == 0 {
			ids = append(ids, t.ID)
		}
	}
	return ids, err
}

func printPlanEnd(s *session, p *task.Plan, failures []answer.Failure, all int) {
	s.printf("%s %s; %s\n", planName(p), p.State, planCounts(p))
	printFailures(s, failures, all)
	if remedy := s.planRemedy(p); remedy != "" {
		s.printf("\n%s\n", remedy)
	}
}
