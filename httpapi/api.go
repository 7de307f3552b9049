package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// api is what lies below root.
type api struct {
	m    *manager.Manager
	log  *slog.Logger
	huma huma.API
	// streams are those of events that are open.
	streams *streams
	// planFiles bounds how many plan files are read at a time, uploads how many blobs.
	planFiles, uploads room
	// gateway serves workers, nil for none; waiting bounds how many wait at a time.
	gateway *worker.Gateway
	waiting room
	http.Handler
}

// root is where the interface begins. What it answers stays readable for its clients as long as it has this name.
const root = "/api/v1"

// newAPI is the interface with its description.
func newAPI(o *Options) *api {
	json := huma.Format{Marshal: clean.WriteJSON, Unmarshal: huma.DefaultJSONFormat.Unmarshal}
	config := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "TDF", Version: "1", License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
				Description: "Tasks, jobs, queues, nodes and workers of a site of TDF. What the command line prints with --json is what is " +
					"answered here, to the byte.",
			},
			Components: &huma.Components{
				Schemas: newRegistry(),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					bearer: {Type: "http", Scheme: "bearer", Description: "A token, as tdf-manager token add prints it."},
				},
			},
			Servers: []*huma.Server{{URL: "/"}},
			Tags:    tags(),
		},
		OpenAPIPath:                  root + "/openapi",
		Formats:                      map[string]huma.Format{"application/json": json, "json": json},
		DefaultFormat:                "application/json",
		Transformers:                 []huma.Transformer{explain},
		RejectUnknownQueryParameters: true,
	}
	mux := http.NewServeMux()
	a := &api{
		m: o.Manager, log: o.Logger, huma: humago.New(mux, config), streams: newStreams(o.Manager),
		planFiles: make(room, mostPlanFiles), uploads: make(room, mostUploads),
		gateway: o.Gateway, waiting: make(room, MostWaiting),
	}
	a.tasks()
	a.submission()
	a.changes()
	a.jobs()
	a.plans()
	a.programs()
	a.series()
	a.blobs()
	a.fleet()
	a.fleetChanges()
	a.tokens()
	a.changeLog()
	a.events()
	a.outputs()
	a.work()
	for path, methods := range a.paths() {
		for _, other := range []string{http.MethodDelete, http.MethodGet, http.MethodOptions, http.MethodPatch, http.MethodPost, http.MethodPut} {
			if !slices.Contains(methods, other) { // not any method: a pattern must not be wider and narrower than another
				mux.Handle(other+" "+path, otherMethods(path, methods))
			}
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusNotFound, fmt.Sprintf("%s is not here; %s/openapi.json describes what is", r.URL.Path, root))
	})
	a.Handler = a.known(mux, o.now)
	return a
}

// tags are the nouns of the interface.
func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: "tasks", Description: "Programs that are to be run, what became of them, and what they left."},
		{Name: "jobs", Description: "What a submission of many tasks has become."},
		{Name: "plans", Description: "Tasks that wait for others and get their results."},
		{Name: "queues", Description: "Where tasks wait, with limits and defaults."},
		{Name: "series", Description: "Tasks that run again and again."},
		{Name: "nodes", Description: "The hosts of workers, with limits."},
		{Name: "workers", Description: "What runs tasks."},
		{Name: workTag, Description: "What workers ask that do not reach Redis, each with a token of its own."},
		{Name: "programs", Description: "What workers keep of the programs that they have run."},
		{Name: "blobs", Description: "What tasks read from stdin, and packed programs that they run."},
		{Name: "events", Description: "The steps of tasks, as they happen."},
		{Name: "tokens", Description: "What requests show."},
		{Name: "changes", Description: "Who changed what."},
	}
}

// An operation of the interface.
type operation struct {
	method, path string
	// id names it in clients that are made from the description.
	id string
	// tag is the noun that it is about.
	tag string
	// does says in a line what it does, detail the rest.
	does, detail string
	role         task.TokenRole
	// status is that of an answer; 0 for 200.
	status int
	change func(*huma.Operation)
}

// add serves an operation. Its input and its answer are those of huma: their tags are the description, and what a request must
// fit before do is called.
func add[I, O any](a *api, op operation, do func(ctx context.Context, in *I) (*O, error)) {
	described := huma.Operation{
		OperationID: op.id, Method: op.method, Path: root + op.path, Summary: op.does, Description: op.detail, Tags: []string{op.tag},
		DefaultStatus: op.status, MaxBodyBytes: mostBody, BodyReadTimeout: bodyTimeout,
		Security:    []map[string][]string{{bearer: {}}},
		Middlewares: huma.Middlewares{a.may(op.role)},
	}
	if op.change != nil {
		op.change(&described)
	}
	huma.Register(a.huma, described, func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, failure(ctx, a.log, err)
		}
		return out, nil
	})
}

// body is one that a verb prints as well.
type body[T any] struct{ Body T }

// paths are those of the description, each with its methods.
func (a *api) paths() map[string][]string {
	all := map[string][]string{}
	for path, item := range a.huma.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPut: item.Put, http.MethodPost: item.Post, http.MethodDelete: item.Delete,
			http.MethodPatch: item.Patch,
		} {
			if op != nil {
				all[path] = append(all[path], method)
			}
		}
		slices.Sort(all[path])
	}
	return all
}
