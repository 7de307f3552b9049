package verbs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/task"
)

// jobs is the verb that lists jobs.
func (a *app) jobs() *cobra.Command {
	var most int
	cmd := withJSON(&cobra.Command{
		Use: "jobs", Short: "List jobs, the newest first: what each submission made", Args: cobra.NoArgs,
		Long: "jobs lists what submit and plan made, the newest first. A job has a name, such as j7, which verbs take\n" +
			"in the place of tasks: show, ls, wait, cancel, hold, release, retry, attr, logs, results and export. last is\n" +
			"the job of the task opened last. WAITING counts tasks that have not begun; a task that was retried\n" +
			"counts as what its retry comes to.",
		Example: "  tdf-manager jobs\n  tdf-manager wait j7\n  tdf-manager retry j7 --failed\n  tdf-manager results last --csv",
		RunE:    a.withManager(func(ctx context.Context, s *session) error { return listJobs(ctx, s, most) }),
	})
	cmd.Flags().IntVar(&most, "limit", 20, "list at most this `number` of jobs")
	return cmd
}

func listJobs(ctx context.Context, s *session, most int) error {
	if err := checkMost(most); err != nil {
		return err
	}
	jobs, err := answer.Jobs(ctx, s.manager, most)
	if err != nil {
		return err
	}
	now, err := s.shownAt(ctx)
	if err != nil {
		return err
	}
	return s.result(jobs, func() {
		if len(jobs) == 0 {
			s.note("there is no job yet; make one with %s", s.command("submit"))
			return
		}
		table := s.out.Table("JOB", "NAME", "STATE", "TASKS", "WAITING", "RUNNING", "ENDED", "AGE")
		for i := range jobs {
			j := &jobs[i]
			table.Row(plans.JobName(j.ID), dashText(j.Name), j.Word(), j.Total, j.Waiting(), j.Running, dashText(endedLine(&j.Plan)),
				waited(j.Created, now))
		}
		table.Flush()
	})
}

// showJob prints the job that the only argument means, if it means one: a job of one task, by the word last, is that task.
func (s *session) showJob(ctx context.Context) (done bool, err error) {
	id := bulk.JobOf(s.args[0])
	if s.args[0] == bulk.LastTask {
		last, err := bulk.Newest(ctx, s.manager)()
		if id = last.Job; err != nil {
			return true, err
		}
	}
	if id == 0 {
		return false, nil
	}
	p, err := s.manager.Plan(ctx, id)
	if err != nil {
		return true, s.noJob(id, err)
	}
	if s.args[0] == bulk.LastTask && p.Total == 1 {
		return false, nil
	}
	return true, s.showAsJob(ctx, p)
}

// showAsJob prints how far a plan is, at a cost that does not grow with its tasks.
func (s *session) showAsJob(ctx context.Context, p *task.Plan) error {
	j, err := answer.JobOf(ctx, s.manager, p)
	if err != nil {
		return err
	}
	return s.result(j, func() { printJob(s, j) })
}

func printJob(s *session, j *answer.Job) {
	name := plans.JobName(j.ID)
	table := s.out.Table()
	table.Row("job", name)
	table.Row("name", dashText(j.Name))
	table.Row("state", j.Word())
	table.Row("tasks", j.Total)
	table.Row("waiting", j.Waiting())
	table.Row("running", j.Running)
	table.Row("ended", dashText(endedLine(&j.Plan)))
	if j.Window > 0 {
		table.Row("at a time", j.Window)
	}
	if len(j.After) > 0 {
		table.Row("after", afterText(j.After))
	}
	table.Row("created", when(j.Created))
	table.Row("over", when(j.Over))
	table.Flush()
	s.printf("\nsee its tasks with %s", s.command("ls %s", name))
	switch {
	case !j.Job:
		s.printf(", and what they need with %s", s.command("plan show %d", j.ID))
	case j.State == task.PlanFailed:
		s.printf(", why some failed with %s; %s runs these again",
			s.command("logs %s --state failed --stderr", name), s.command("retry %s --failed", name))
	}
	s.printf("\n")
}

// afterText is what a job comes after, as --after has it.
func afterText(after []task.PlanNeed) string {
	texts := make([]string, len(after))
	for i, n := range after {
		if texts[i] = plans.JobName(n.Plan); n.On != task.NeedsSuccess {
			texts[i] += ":" + string(n.On)
		}
	}
	return strings.Join(texts, ", ")
}

// noJob is the error for a job, with the remedy if it is not there.
func (s *session) noJob(id task.PlanID, err error) error {
	if errors.Is(err, task.ErrNoPlan) {
		text := fmt.Sprintf("job %s: no such job; see %s", plans.JobName(id), s.command("jobs"))
		return cli.WithCode(cli.ExitUsage, noJobError(text))
	}
	return err
}

// noJobError is a task.ErrNoPlan in words about a job.
type noJobError string

func (e noJobError) Error() string { return string(e) }

func (noJobError) Unwrap() error { return task.ErrNoPlan }

// jobSpec is the job of the submission.
func (sub *submission) jobSpec(ctx context.Context, s *session, specs []task.Spec) (task.PlanSpec, error) {
	spec := task.PlanSpec{Name: sub.jobName(s, specs), Window: sub.window}
	for _, text := range sub.after {
		name, on, _ := strings.Cut(text, ":")
		id := bulk.JobOf(name)
		if name == bulk.LastTask {
			last, err := bulk.Newest(ctx, s.manager)()
			if err != nil {
				return spec, err
			}
			id = last.Job
		}
		if id == 0 || task.CheckNeeds([]task.Need{{Task: int64(id), On: task.When(on)}}, 0) != nil {
			return spec, cli.Usagef("--after %q is no job; write j6, or j6:any or j6:failure for how it may end", text)
		}
		if _, err := s.manager.Plan(ctx, id); err != nil {
			return spec, s.noJob(id, err)
		}
		spec.After = append(spec.After, task.PlanNeed{Plan: id, On: task.When(on)})
	}
	return spec, nil
}

// jobName is what --name says, or else what is run: a program, a command, or a file of lines.
func (sub *submission) jobName(s *session, specs []task.Spec) string {
	const most = 60
	name := sub.name
	switch {
	case name != "" || len(specs) == 0:
		return name
	case sub.eachLine != "" && sub.command && len(s.args) == 0:
		name = sub.eachLine
	default:
		if name, _, _ = strings.Cut(specs[0].Source, task.Pin("")); specs[0].Program != "" {
			name = specs[0].Program
		}
	}
	return clean.Shorten(cli.Safe(path.Base(strings.TrimPrefix(name, task.CommandPrefix))), most)
}
