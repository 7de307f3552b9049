package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// MostWaiting is how many workers wait for tasks at a time, with a connection to Redis each.
const MostWaiting = 1000

// workTag is the noun of what workers ask.
const workTag = "work"

// mostTurn is the longest body of a turn, turnTimeout the longest time to send it: it has what programs have written.
const (
	mostTurn    = 6 << 20
	turnTimeout = time.Minute
)

// work serves workers that do not reach Redis.
func (a *api) work() {
	if a.gateway == nil {
		return
	}
	work := func(method, path, id, does, detail string) operation {
		return operation{
			method: method, path: "/workers/{name}" + path, id: id, tag: workTag, does: does, detail: detail, role: task.TokenWork,
		}
	}
	const over = " 410 means that the session is over: what the worker runs is others' by now, and it has to register again."
	begin := work(http.MethodPost, "/session", "begin-session", "Register a worker",
		"What an earlier session of the name still held is lost: it goes to other workers, or to this one. While another process "+
			"has the name, this is refused, unless take_over says that it is dead, or this one itself.")
	begin.status = http.StatusCreated
	add(a, begin, a.beginSession)
	add(a, work(http.MethodPut, "/session", "keep-session", "Send a heartbeat",
		"To be sent three times in the length of the lease, unless a turn waits meanwhile. The answer says what is wanted of the worker."+over),
		a.keepSession)
	add(a, work(http.MethodDelete, "/session", "end-session", "Deregister a worker that runs nothing any more", ""), a.endSession)
	turn := work(http.MethodPost, "/turn", "take-turn", "Report on rounds, and get tasks",
		"Reports are made first, each on its own. Sent again they are answered, and nothing is recorded twice; a claim that is sent again "+
			"under its name gets the same tasks."+over)
	turn.change = func(op *huma.Operation) { op.MaxBodyBytes, op.BodyReadTimeout = mostTurn, turnTimeout }
	add(a, turn, a.takeTurn)
	news := work(http.MethodPost, "/news", "tell-news", "Tell how a round comes along",
		"Progress, lines for the log, attributes, and parts of the output for those who follow the task."+over)
	news.status = http.StatusNoContent
	add(a, news, a.tellNews)
	a.wholeWork(work)
	blob := work(http.MethodGet, "/blobs/{sha256}", "get-work-blob", "Get what a task reads from stdin, or a packed program", rangesHelp)
	blob.change = a.streaming(anyBytes)
	add(a, blob, func(ctx context.Context, in *workBlobIn) (*huma.StreamResponse, error) {
		return a.getBlob(ctx, &blobOut{SHA256: in.SHA256})
	})
}

// wholeWork serves what only a tdf-worker asks.
func (a *api) wholeWork(work func(method, path, id, does, detail string) operation) {
	add(a, work(http.MethodGet, "/site", "get-work-site", "Get what a worker has to know before it registers", ""), a.workSite)
	add(a, work(http.MethodGet, "/call", "await-work-call", "Wait until a heartbeat of the worker is wanted at once",
		"An order, a task to stop, or somebody who follows the output of one. A call may be missing: the heartbeat tells it as well."),
		a.awaitCall)
	add(a, work(http.MethodPost, "/question", "ask-question", "Ask about a round that the worker runs",
		"What the tasks have brought that it needs, fields of its record, which version others run or keep. 409 means that the round is over."),
		a.askQuestion)
	files := work(http.MethodPut, "/files/{sha256}", "put-work-files", "Put what a round returns, before it is reported",
		"The body, up to [server] blob_limit, must have that hash. 409 means that the worker holds no round, 507 that there is no room.")
	files.status = http.StatusCreated
	add(a, files, a.putWorkFiles)
	put := a.huma.OpenAPI().Paths[root+"/workers/{name}/files/{sha256}"].Put
	put.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		anyBytes: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
	}}
}

type workSiteIn struct {
	Name string `path:"name" maxLength:"128" doc:"Name of the worker: that of the token."`
}

func (a *api) workSite(ctx context.Context, _ *workSiteIn) (*body[worker.SiteView], error) {
	site, err := a.gateway.Site(ctx)
	return &body[worker.SiteView]{site}, err
}

type callIn struct {
	Name string `path:"name" maxLength:"128" doc:"Name of the worker: that of the token."`
	Wait int    `query:"wait" minimum:"1" maximum:"60" default:"60" doc:"How long to wait, in seconds."`
}

// workCall is the answer to a wait for a call.
type workCall struct {
	Called bool `json:"called" doc:"A heartbeat is wanted."`
}

func (a *api) awaitCall(ctx context.Context, in *callIn) (*body[workCall], error) {
	if err := a.waiting.enter("turns that wait"); err != nil {
		return nil, err
	}
	defer a.waiting.leave()
	lasting, end := a.lasting(ctx)
	defer end()
	defer callerOf(ctx).sent.patient()()
	return &body[workCall]{workCall{a.gateway.Listen(lasting, in.Name, time.Duration(in.Wait)*time.Second)}}, nil
}

type questionIn struct {
	Name string `path:"name" maxLength:"128" doc:"Name of the worker: that of the token."`
	Body worker.RoundQuestion
}

func (a *api) askQuestion(ctx context.Context, in *questionIn) (*body[worker.RoundFacts], error) {
	facts, err := a.gateway.Ask(ctx, in.Name, &in.Body)
	return &body[worker.RoundFacts]{facts}, err
}

type workFilesIn struct {
	Name   string `path:"name" maxLength:"128" doc:"Name of the worker: that of the token."`
	SHA256 string `path:"sha256" pattern:"^[0-9a-f]{64}$" doc:"The SHA-256 of the bytes, in hex."`
	Spare  bool   `query:"spare" doc:"Nobody has asked for them: they may find less room."`
}

func (a *api) putWorkFiles(ctx context.Context, in *workFilesIn) (_ *struct{}, err error) {
	if err := a.uploads.enter("uploads"); err != nil {
		return nil, err
	}
	defer a.uploads.leave()
	if err := a.gateway.Holds(ctx, in.Name); err != nil {
		return nil, err
	}
	file, err := a.received(ctx, in.SHA256)
	if err != nil {
		return nil, err
	}
	defer callerOf(ctx).sent.done()
	defer func() { err = errors.Join(err, file.Close()) }()
	return nil, a.gateway.PutFiles(ctx, in.Name, in.SHA256, file.Size(), file, !in.Spare)
}

type sessionIn struct {
	Name string `path:"name" maxLength:"128" doc:"Name of the worker: that of the token."`
	Body worker.SessionRequest
}

// sessionBegun is the answer to a registration.
type sessionBegun struct {
	worker.Standing

	Lost []int64 `json:"lost" doc:"Tasks that an earlier session held. They are not the worker's any more."`
}

func (a *api) beginSession(ctx context.Context, in *sessionIn) (*body[sessionBegun], error) {
	standing, lost, err := a.gateway.Register(ctx, in.Name, callerOf(ctx).from, &in.Body)
	return &body[sessionBegun]{sessionBegun{standing, lost}}, err
}

type heartbeatIn struct {
	Name string `path:"name" maxLength:"128" doc:"Name of the worker: that of the token."`
	Body worker.SessionBeat
}

func (a *api) keepSession(ctx context.Context, in *heartbeatIn) (*body[worker.Standing], error) {
	standing, err := a.gateway.Renew(ctx, in.Name, &in.Body)
	return &body[worker.Standing]{standing}, err
}

type sessionEnd struct {
	Name        string `path:"name" maxLength:"128" doc:"Name of the worker: that of the token."`
	Incarnation int64  `query:"incarnation" minimum:"1" required:"true" doc:"Number of the session."`
}

func (a *api) endSession(ctx context.Context, in *sessionEnd) (*struct{}, error) {
	return nil, a.gateway.Leave(ctx, in.Name, in.Incarnation)
}

type turnIn struct {
	Name string `path:"name" maxLength:"128" doc:"Name of the worker: that of the token."`
	Body worker.RoundTurn
}

func (a *api) takeTurn(ctx context.Context, in *turnIn) (*body[worker.RoundAnswer], error) {
	if in.Body.Slots > 0 && in.Body.Wait > 0 {
		if err := a.waiting.enter("turns that wait"); err != nil {
			return nil, err
		}
		defer a.waiting.leave()
		lasting, end := a.lasting(ctx)
		defer end()
		ctx = lasting
		defer callerOf(ctx).sent.patient()()
	}
	got, err := a.gateway.Turn(ctx, in.Name, &in.Body)
	return &body[worker.RoundAnswer]{got}, err
}

type newsIn struct {
	Name string `path:"name" maxLength:"128" doc:"Name of the worker: that of the token."`
	Body worker.RoundNews
}

func (a *api) tellNews(ctx context.Context, in *newsIn) (*struct{}, error) {
	return nil, a.gateway.Tell(ctx, in.Name, &in.Body)
}

type workBlobIn struct {
	Name   string `path:"name" maxLength:"128" doc:"Name of the worker: that of the token."`
	SHA256 string `path:"sha256" pattern:"^[0-9a-f]{64}$" doc:"The SHA-256 of the bytes, in hex."`
}
