package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan/file"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

const (
	planFile = "application/yaml"
	// mostPlanFiles is how many are read at a time: the tasks of one may take much memory.
	mostPlanFiles = 2
	// mostErrors is how many errors of a file are told.
	mostErrors = 100
)

// plans serves plans, and makes them from files.
func (a *api) plans() {
	const tag = "plans"
	add(a, operation{
		method: http.MethodGet, path: "/plans", id: "list-plans", tag: tag, role: task.TokenRead, does: "List plans, the newest first",
	}, func(ctx context.Context, in *plansIn) (*body[[]task.Plan], error) {
		found, err := answer.Plans(ctx, a.m, in.Limit, false)
		return &body[[]task.Plan]{found}, err
	})
	add(a, operation{
		method: http.MethodGet, path: "/plans/{id}", id: "show-plan", tag: tag, role: task.TokenRead,
		does: "Show a plan with its tasks, and what is still to come of it", change: a.planOrJob,
		detail: "Retries stand in the place of the tasks that they repeat. Of a job, which is a plan of tasks that need nothing of one " +
			"another, it says how far that is.",
	}, a.showPlan)
	a.planSubmission()
	a.planChanges()
}

type plansIn struct {
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"Most plans that are listed."`
}

// planID is a path that names a plan.
type planID struct {
	ID task.PlanID `path:"id" minimum:"1" doc:"Id of a plan."`
}

// planOrJob describes an answer that is one of both.
func (a *api) planOrJob(op *huma.Operation) {
	schemas := a.huma.OpenAPI().Components.Schemas
	op.Responses = map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{
		AnyOf: []*huma.Schema{
			schemas.Schema(reflect.TypeFor[manager.PlanView](), true, ""), schemas.Schema(reflect.TypeFor[answer.Job](), true, ""),
		},
	}}}}}
}

func (a *api) showPlan(ctx context.Context, in *planID) (*body[any], error) {
	p, err := a.m.Plan(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	var found any
	if p.Job {
		found, err = answer.JobOf(ctx, a.m, p)
	} else {
		found, err = a.m.ViewPlan(ctx, in.ID)
	}
	return &body[any]{found}, err
}

// planChanges serves what takes a whole plan to another state.
func (a *api) planChanges() {
	const tag = "plans"
	for _, c := range []struct {
		verb, does string
		do         func(context.Context, task.PlanID, manager.ChangeOptions) error
	}{
		{"hold", "Start no more tasks of a plan; running ones go on", a.m.HoldPlan},
		{"cancel", "Cancel a plan: its waiting tasks, and stop the running ones", a.m.CancelPlan},
	} {
		add(a, operation{
			method: http.MethodPost, path: "/plans/{id}/" + c.verb, id: c.verb + "-plan", tag: tag, role: task.TokenOperate, does: c.does,
			detail: "Sent again, it goes on where it was cut off.",
		}, func(ctx context.Context, in *planChangeIn) (*body[*task.Plan], error) {
			return a.steer(ctx, in.ID, func(ctx context.Context, id task.PlanID) error {
				return c.do(ctx, id, callerOf(ctx).change(in.reason(), false))
			})
		})
	}
	add(a, operation{
		method: http.MethodPost, path: "/plans/{id}/resume", id: "resume-plan", tag: tag, role: task.TokenOperate,
		does: "Continue a held plan", detail: "Tasks that need a failed task wait until that is retried.",
	}, func(ctx context.Context, in *planID) (*body[*task.Plan], error) {
		p, err := answer.SteeredPlan(ctx, a.m, in.ID, a.m.ResumePlan)
		return &body[*task.Plan]{p}, err
	})
	add(a, operation{
		method: http.MethodPost, path: "/plans/{id}/retry", id: "retry-plan", tag: tag, role: task.TokenOperate,
		does: "Open again the tasks of a plan that did not succeed, and what waited for them",
		detail: "Each new task stands in the place of the old one; succeeded tasks do not run again. Sent again, it " +
			"goes on where it was cut off.",
	}, a.retryPlan)
}

// planChangeIn names a plan, and why it is changed.
type planChangeIn struct {
	ID   task.PlanID `path:"id" minimum:"1" doc:"Id of a plan."`
	Body *struct {
		Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Why, for the record of each task."`
	}
}

func (in *planChangeIn) reason() string {
	if in.Body == nil {
		return ""
	}
	return in.Body.Reason
}

// planRetryIn names a plan whose tasks are retried.
type planRetryIn struct {
	ID   task.PlanID `path:"id" minimum:"1" doc:"Id of a plan."`
	Body *struct {
		DryRun bool `json:"dry_run,omitempty" doc:"Say what would be done, and do nothing."`
	}
}

// steer takes a plan to another state.
func (a *api) steer(ctx context.Context, id task.PlanID, do func(context.Context, task.PlanID) error) (*body[*task.Plan], error) {
	defer callerOf(ctx).sent.patient()()
	p, err := answer.SteeredPlan(ctx, a.m, id, do)
	return &body[*task.Plan]{p}, err
}

func (a *api) retryPlan(ctx context.Context, in *planRetryIn) (*body[*answer.PlanRetried], error) {
	defer callerOf(ctx).sent.patient()()
	dryRun := in.Body != nil && in.Body.DryRun
	retried, err := a.m.RetryPlan(ctx, in.ID, callerOf(ctx).change("", dryRun))
	if err != nil {
		return nil, err
	}
	done, err := answer.RetriedPlan(in.ID, retried, dryRun)
	return &body[*answer.PlanRetried]{done}, err
}

func (a *api) planSubmission() {
	add(a, operation{
		method: http.MethodPost, path: "/plans", id: "submit-plan", tag: "plans", role: task.TokenSubmit, status: http.StatusCreated,
		does: "Make a plan from a plan file, and start it",
		detail: "The body is a plan file, up to 1 MiB. No task runs before the whole plan is made. A server reads no files: what steps take " +
			"along is put into Redis before, and named by its hash. Sent again with the same Idempotency-Key within 24 hours, the same file " +
			"with the same parameters makes nothing twice, and an interrupted one is finished; another one under that key is refused.",
	}, a.submitPlan)
	a.huma.OpenAPI().Paths[root+"/plans"].Post.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		planFile: {Schema: &huma.Schema{Type: huma.TypeString, Description: "A plan file."}},
	}}
}

// planSubmitIn is a plan file: it is read from the body as it comes.
type planSubmitIn struct {
	Key    string   `header:"Idempotency-Key" maxLength:"200" doc:"Name of the submission, which makes it safe to send it again."`
	DryRun bool     `query:"dry_run" doc:"Check the file, and make no plan."`
	Param  []string `query:"param,explode" maxItems:"1000" doc:"Parameter of the file as name=value, a list as name=a,b,c."`
}

type planSubmitted struct {
	Location string `header:"Location" doc:"The plan."`
	Body     *answer.PlanSubmitted
}

func (a *api) submitPlan(ctx context.Context, in *planSubmitIn) (*planSubmitted, error) {
	params, err := in.params()
	if err != nil {
		return nil, err
	}
	s := callerOf(ctx).sent
	text, err := s.receivePlan()
	if err != nil {
		return nil, err
	}
	defer s.done()
	select {
	case a.planFiles <- struct{}{}:
		defer a.planFiles.leave()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p, err := a.readPlan(ctx, text, params)
	if err != nil {
		return nil, err
	}
	out := &planSubmitted{Body: &answer.PlanSubmitted{Tasks: len(p.Tasks), DryRun: in.DryRun}}
	if in.DryRun {
		return out, nil
	}
	key := cmp.Or(in.Key, rand.Text())
	id, _, err := p.Open(ctx, a.m, "http "+callerOf(ctx).ID+" "+key)
	if err != nil {
		return nil, a.halfMade(ctx, id, key, err)
	}
	out.Body.Plan, out.Location = id, fmt.Sprintf("%s/plans/%d", root, id)
	return out, nil
}

// params are the values of parameters, by their names.
func (in *planSubmitIn) params() (map[string]string, error) {
	params := map[string]string{}
	for _, pair := range in.Param {
		name, text, found := strings.Cut(pair, "=")
		if _, twice := params[name]; !found || name == "" || twice {
			return nil, &statemachine.FieldError{Field: "param", Value: pair, Want: "name=value, each name once"}
		}
		params[name] = text
	}
	return params, nil
}

func (s *sent) receivePlan() ([]byte, error) {
	if kind := s.kind(planFile); kind != planFile {
		return nil, newProblem(http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Type %q: send a plan file as %s", kind, planFile))
	}
	var text bytes.Buffer
	err := s.to(&text, mostBody)
	return text.Bytes(), err
}

// readPlan reads a plan file, and checks all that can be checked before anything is made.
func (a *api) readPlan(ctx context.Context, text []byte, params map[string]string) (*answer.PlanFile, error) {
	now, err := a.m.Now(ctx)
	if err != nil {
		return nil, err
	}
	p, err := answer.ReadPlan("body", text, params, now)
	if err == nil {
		err = p.TakeAlong(func(string, string) (string, error) {
			return "", errors.New("files of the server are not read; put what it takes along under /blobs, and name it as source: blob:sha256=HASH")
		})
	}
	if err != nil {
		return nil, badPlan(err)
	}
	usable := a.usable(ctx)
	specs := p.All()
	for i := range specs {
		err := usable(&specs[i])
		if errors.Is(err, task.ErrUnreachable) {
			return nil, err
		}
		if err == nil && specs[i].Source != "" {
			_, err = task.ParseSource(specs[i].Source)
		}
		if err != nil {
			return nil, badPlan(p.At(&specs[i], err))
		}
	}
	return p, nil
}

// badPlan is the answer to a file that is no plan: each error with its line and its field.
func badPlan(err error) error {
	wrong, ok := errors.AsType[file.Errors](err)
	if !ok || len(wrong) == 0 {
		return err
	}
	var details []*huma.ErrorDetail
	for _, e := range wrong[:min(len(wrong), mostErrors)] {
		detail := &huma.ErrorDetail{Location: "body", Message: e.Err.Error()}
		if e.Line > 0 {
			detail.Location = fmt.Sprintf("line %d", e.Line)
		}
		if e.Field != "" {
			detail.Location += "." + e.Field
		}
		details = append(details, detail)
	}
	text := wrong[0].Error()
	if more := len(wrong) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return newProblem(http.StatusUnprocessableEntity, text+"; nothing was opened", details...)
}

// halfMade says how a plan that was made in part is finished.
func (a *api) halfMade(ctx context.Context, id task.PlanID, key string, err error) error {
	switch {
	case errors.Is(err, task.ErrRequestKey):
		return newProblem(http.StatusConflict, fmt.Sprintf("Idempotency-Key %s was used for plan %d, which has other tasks; give another key to "+
			"another file or other parameters", key, id))
	case id == 0:
		return err
	}
	err = failure(ctx, a.log, err)
	if p, ok := errors.AsType[*huma.ErrorModel](err); ok {
		p.Detail = fmt.Sprintf("plan %d was not made to its end, and nothing of it runs: %s; to finish it, send it again with "+
			"Idempotency-Key: %s; to be rid of it: POST %s/plans/%[1]d/cancel", id, p.Detail, key, root)
	}
	return err
}
