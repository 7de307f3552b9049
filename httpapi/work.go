package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// MostWaiting is how many workers wait for tasks at a time, with a connection to Redis each.
const MostWaiting = 1000

// workTag is the noun of what workers ask.
const workTag = "work"

// mostTurn is the longest body of a turn: it has what programs have written.
const mostTurn = 4 << 20

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
	turn.change = func(op *huma.Operation) { op.MaxBodyBytes = mostTurn }
	add(a, turn, a.takeTurn)
	news := work(http.MethodPost, "/news", "tell-news", "Tell how a round comes along",
		"Progress, lines for the log, attributes, and parts of the output for those who follow the task."+over)
	news.status = http.StatusNoContent
	add(a, news, a.tellNews)
	blob := work(http.MethodGet, "/blobs/{sha256}", "get-work-blob", "Get what a task reads from stdin, or a packed program", rangesHelp)
	blob.change = a.streaming(anyBytes)
	add(a, blob, func(ctx context.Context, in *workBlobIn) (*huma.StreamResponse, error) {
		return a.getBlob(ctx, &blobOut{SHA256: in.SHA256})
	})
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
	Body struct {
		Incarnation int64 `json:"incarnation" minimum:"1" doc:"Number of the session."`
		Busy        int   `json:"busy,omitempty" minimum:"0" maximum:"1000" doc:"How many rounds it runs, for those who look at workers."`
	}
}

func (a *api) keepSession(ctx context.Context, in *heartbeatIn) (*body[worker.Standing], error) {
	standing, err := a.gateway.Renew(ctx, in.Name, in.Body.Incarnation, in.Body.Busy)
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
