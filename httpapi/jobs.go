package httpapi

import (
	"context"
	"net/http"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/task"
)

// jobs serves what submissions and plans have made.
func (a *api) jobs() {
	const tag = "jobs"
	add(a, operation{
		method: http.MethodGet, path: "/jobs", id: "list-jobs", tag: tag, role: task.TokenRead, does: "List jobs, the newest first",
	}, a.listJobs)
	add(a, operation{
		method: http.MethodGet, path: "/jobs/{job}", id: "show-job", tag: tag, role: task.TokenRead, does: "Show how far a job is",
		detail: "It costs the same however many tasks the job has. GET /tasks?tasks=j7 lists these.",
	}, a.showJob)
}

type jobsIn struct {
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"Most jobs that are listed."`
}

func (a *api) listJobs(ctx context.Context, in *jobsIn) (*body[[]answer.Job], error) {
	found, err := answer.Jobs(ctx, a.m, in.Limit)
	return &body[[]answer.Job]{found}, err
}

type jobIn struct {
	Job string `path:"job" pattern:"^j[1-9][0-9]{0,17}$" doc:"Name of a job, such as j7." example:"j7"`
}

func (a *api) showJob(ctx context.Context, in *jobIn) (*body[*answer.Job], error) {
	p, err := a.m.Plan(ctx, bulk.JobOf(in.Job))
	if err != nil {
		return nil, err
	}
	found, err := answer.JobOf(ctx, a.m, p)
	return &body[*answer.Job]{found}, err
}
