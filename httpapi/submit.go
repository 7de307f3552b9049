package httpapi

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

const (
	oneTask   = "application/json"
	manyTasks = "application/jsonl"
	// mostTasks is the longest body with tasks, sendTimeout the longest pause while it is sent.
	mostTasks   = 256 << 20
	sendTimeout = 10 * time.Second
)

func (a *api) submission() {
	add(a, operation{
		method: http.MethodPost, path: "/tasks", id: "submit-tasks", tag: "tasks", role: task.TokenSubmit, status: http.StatusCreated,
		does: "Open a task, or many as a job",
		detail: "The body is a task, or as application/jsonl one on each line, up to 256 MiB. All of them are checked before the first is " +
			"opened. Those of a body become one job. Sent again with the same Idempotency-Key within 24 hours, the same tasks are opened " +
			"once, also where the first request was cut off; other tasks under that key are refused.",
	}, a.submit)
	// huma would read and check a body that it knows of before that.
	a.huma.OpenAPI().Paths[root+"/tasks"].Post.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		oneTask:   {Schema: newTask()},
		manyTasks: {Schema: &huma.Schema{Type: huma.TypeString, Description: "A task in JSON on each line."}},
	}}
}

// submitIn is a submission: the tasks are read from the body as it comes.
type submitIn struct {
	Key    string   `header:"Idempotency-Key" maxLength:"200" doc:"Name of the submission, which makes it safe to send it again."`
	DryRun bool     `query:"dry_run" doc:"Check the tasks, and open none."`
	Name   string   `query:"name" maxLength:"256" doc:"Name of the job, for people."`
	Window int      `query:"window" minimum:"0" doc:"Most tasks of the job that are open or run at a time; 0 for any number."`
	After  []string `query:"after" maxItems:"100" doc:"Jobs that must end before it, such as j6, or j6:any or j6:failure for how."`
}

// sent is the body of a request, which is read as it comes, and the time that its answer may take.
type sent struct {
	body   io.Reader
	header string // Content-Type
	rc     *http.ResponseController
}

// sentBy is what a client sends.
func sentBy(ctx huma.Context) *sent {
	r, w := humago.Unwrap(ctx)
	return &sent{body: r.Body, header: r.Header.Get("Content-Type"), rc: http.NewResponseController(w)}
}

// kind is the media type of the body, unsaid if the client says none. One that cannot be parsed is empty, and refused like any other.
func (s *sent) kind(unsaid string) string {
	kind, _, _ := mime.ParseMediaType(cmp.Or(s.header, unsaid))
	return kind
}

// to writes the body to w, however long it takes as long as it comes, and then lets the answer take its time.
func (s *sent) to(w io.Writer, most int64) error {
	n, err := io.Copy(w, io.LimitReader(&patient{s.body, s.rc}, most+1))
	switch {
	case err != nil:
		return newProblem(http.StatusBadRequest, fmt.Sprintf("the body cannot be read: %v; nothing was done", err))
	case n > most:
		return newProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body may have at most %d bytes; nothing was done", most))
	}
	s.patient()
	return nil
}

// patient lets the answer take its time, until done, which it returns, is called.
func (s *sent) patient() (done func()) {
	_ = s.rc.SetWriteDeadline(time.Time{}) // a writer without deadlines has none to lift
	return s.done
}

// done ends the time that the answer may take.
func (s *sent) done() { _ = s.rc.SetWriteDeadline(time.Now().Add(sendTimeout)) }

type submitted struct {
	Location string `header:"Location" doc:"The task, if it is one."`
	Body     *answer.Submitted
}

func (a *api) submit(ctx context.Context, in *submitIn) (*submitted, error) {
	s := callerOf(ctx).sent
	text, many, err := s.receive()
	if err != nil {
		return nil, err
	}
	defer s.done()
	defer text.Close() //nolint:errcheck // it was only read
	now, err := a.m.Now(ctx)
	if err != nil {
		return nil, err
	}
	all := &incoming{a: a, text: text, many: many, now: now}
	n, err := all.check(ctx)
	if err != nil {
		return nil, err
	}
	spec, err := in.job(ctx, a)
	if err != nil {
		return nil, err
	}
	if in.DryRun {
		return &submitted{Body: answer.WouldOpen(n)}, nil
	}
	return a.open(ctx, in, all, spec)
}

// open opens tasks that were checked.
func (a *api) open(ctx context.Context, in *submitIn, all *incoming, spec task.PlanSpec) (*submitted, error) {
	c, key, job := callerOf(ctx), cmp.Or(in.Key, rand.Text()), task.PlanID(0)
	opened, err := a.m.SubmitAll(ctx, all.specs(), manager.WithRequestKey("http "+c.ID+" "+key),
		manager.AsJob(spec, func(id task.PlanID) { job = id }))
	if err = errors.Join(err, all.err); err != nil {
		return nil, halfDone(len(opened), key, err)
	}
	out := &submitted{Body: answer.Opened(opened, job)}
	if len(opened) == 1 {
		out.Location = fmt.Sprintf("%s/tasks/%d", root, opened[0].ID)
	}
	return out, nil
}

// halfDone says what was opened before an error, and how to go on.
func halfDone(opened int, key string, err error) error {
	if errors.Is(err, task.ErrRequestKey) {
		return newProblem(http.StatusConflict, "Idempotency-Key "+key+" was used for other tasks; give another one to another submission")
	}
	if opened == 0 {
		return err
	}
	return retryAfter(newProblem(http.StatusServiceUnavailable, fmt.Sprintf("only %d tasks were opened: %v; to open the others, and none "+
		"twice, send it again with Idempotency-Key: %s", opened, err, key)))
}

// receive keeps a body with tasks in a file, since it is read twice, and says whether it may have many.
func (s *sent) receive() (text *disk.Scratch, many bool, err error) {
	most := int64(mostBody)
	switch kind := s.kind(oneTask); kind {
	case oneTask:
	case manyTasks:
		most, many = mostTasks, true
	default:
		return nil, false, newProblem(http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Type %q: send %s for a task, or %s for many",
			kind, oneTask, manyTasks))
	}
	if text, err = disk.NewScratch(""); err != nil {
		return nil, false, err
	}
	if err := s.to(text, most); err != nil {
		return nil, false, errors.Join(err, text.Close())
	}
	return text, many, nil
}

// patient reads a body however long it is, as long as it comes.
type patient struct {
	io.Reader

	rc *http.ResponseController
}

// Read implements [io.Reader].
func (p *patient) Read(to []byte) (int, error) {
	if err := p.rc.SetReadDeadline(time.Now().Add(sendTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err //nolint:wrapcheck // the caller says what it was
	}
	return p.Reader.Read(to)
}

// job is what the tasks become.
func (in *submitIn) job(ctx context.Context, a *api) (task.PlanSpec, error) {
	spec := task.PlanSpec{Name: in.Name, Window: in.Window}
	for _, text := range in.After {
		name, on, _ := strings.Cut(text, ":")
		id := bulk.JobOf(name)
		if id == 0 || task.CheckNeeds([]task.Need{{Task: int64(id), On: task.When(on)}}, 0) != nil {
			return spec, &statemachine.FieldError{Field: "after", Value: text, Want: "a job, such as j6, or j6:any or j6:failure for how it may end"}
		}
		if _, err := a.m.Plan(ctx, id); err != nil {
			return spec, err
		}
		spec.After = append(spec.After, task.PlanNeed{Plan: id, On: task.When(on)})
	}
	return spec, nil
}

// incoming are the tasks of a body.
type incoming struct {
	a    *api
	text io.ReadSeeker
	many bool
	now  time.Time
	err  error
}

// check reads all tasks, and returns how many there are.
func (in *incoming) check(ctx context.Context) (n int, err error) {
	usable := in.a.usable(ctx)
	var spec task.Spec
	for spec = range in.specs() {
		n++
		err := in.a.m.Check(spec)
		if err == nil {
			err = usable(&spec)
		}
		if err != nil {
			return n, in.at(n, err)
		}
	}
	if n == 0 && in.err == nil {
		return 0, newProblem(http.StatusUnprocessableEntity, "the body has no task; send one in JSON")
	}
	return n, in.err
}

// usable is a check of what a task names: a queue that is there, each looked up once, and no file of the server.
func (a *api) usable(ctx context.Context) func(*task.Spec) error {
	queues := map[string]error{"": nil}
	return func(spec *task.Spec) error {
		for _, of := range [...]struct{ field, text string }{{"source", spec.Source}, {"stdin", spec.Stdin}} {
			if strings.HasPrefix(of.text, task.FilePrefix) {
				return &statemachine.FieldError{Field: of.field, Value: of.text, Want: "blob:sha256=HASH; files of the server are not read"}
			}
		}
		if _, known := queues[spec.Queue]; !known {
			_, queues[spec.Queue] = a.m.Queue(ctx, spec.Queue)
		}
		return queues[spec.Queue]
	}
}

// at names the line of an error.
func (in *incoming) at(line int, err error) error {
	if errors.Is(err, task.ErrUnreachable) {
		return err
	}
	place := "body"
	if in.many {
		place = fmt.Sprintf("line %d", line)
	}
	detail := &huma.ErrorDetail{Location: place, Message: err.Error()}
	if field, ok := errors.AsType[*statemachine.FieldError](err); ok {
		detail = badField(place+".", field)
	}
	return newProblem(http.StatusUnprocessableEntity, fmt.Sprintf("%s: %v; nothing was opened", place, err), detail)
}

// specs reads the tasks one after the other, from the first on, until one cannot be: then err says why.
func (in *incoming) specs() iter.Seq[task.Spec] {
	return func(yield func(task.Spec) bool) {
		if _, in.err = in.text.Seek(0, io.SeekStart); in.err != nil {
			return
		}
		scan := bufio.NewScanner(in.text)
		scan.Buffer(nil, mostBody)
		if !in.many {
			scan.Split(whole)
		}
		n, spec := 1, task.Spec{}
		for ; scan.Scan(); n++ {
			spec = task.Spec{}
			if err := answer.ReadTask(&spec, scan.Bytes(), in.now); err != nil {
				in.err = in.at(n, err)
				return
			}
			if !yield(spec) {
				return
			}
		}
		if err := scan.Err(); err != nil {
			in.err = in.at(n, err)
		}
	}
}

// whole makes one token of all that is there.
func whole(data []byte, atEnd bool) (int, []byte, error) {
	if !atEnd || len(data) == 0 {
		return 0, nil, nil
	}
	return len(data), data, nil
}
