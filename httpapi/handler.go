// Package httpapi serves a site over HTTP: whether a daemon is alive and ready, metrics for Prometheus, the site itself, and workers that
// do not reach Redis. It stands on the packages manager and worker alone; tdf-server mounts it where [http] listen says.
package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/worker"
)

// Options say what a handler shows beside the site itself.
type Options struct {
	// Manager is asked for all that is shown of the site.
	Manager *manager.Manager
	// Gateway serves workers that do not reach Redis. Default: they are not served.
	Gateway *worker.Gateway
	// Alive returns what is wrong with the process itself, so that only a restart helps, or nil. Ready returns why it cannot do its
	// work now, apart from Redis, or nil. Default: nothing is wrong.
	Alive, Ready func() error
	// Collectors give further metrics of the process, beside those of Go.
	Collectors []prometheus.Collector
	// Flock says that Flock's interface is served as well. It takes a Gateway.
	Flock bool
	// Disbatch says that Disbatch's interface is.
	Disbatch bool
	// Logger gets what could not be shown. Default: slog.Default.
	Logger *slog.Logger

	now func() time.Time // nil for time.Now
}

// askTimeout bounds how long an answer waits for Redis. Prometheus gives up after 10 s.
const askTimeout = 5 * time.Second

// New returns the handler of a site:
//
//	/healthz   200 if the process works, also without Redis; else 503, and only a restart helps
//	/readyz    200 if Redis answers and the process does its work; else 503
//	/metrics   metrics of site and process in the formats of Prometheus
//	/api/v1    the site itself, as its description at /api/v1/openapi.json says
//
// With Options.Flock there are the paths of Flock's document as well, such as /func, /task and /worker, and a page at /. With
// Options.Disbatch there are those of Disbatch: /nodes, /plugins, /queues and /tasks.
//
// These 503, and what other paths and methods get, are problems as of RFC 9457.
func New(o Options) http.Handler {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	fine := func() error { return nil }
	if o.Alive == nil {
		o.Alive = fine
	}
	if o.Ready == nil {
		o.Ready = fine
	}
	registry := prometheus.NewRegistry()
	labels := prometheus.WrapRegistererWith(prometheus.Labels{"namespace": o.Manager.Namespace()}, registry)
	labels.MustRegister(&site{o.Manager, o.Logger})
	labels.MustRegister(o.Collectors...)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	get := func(path string, handler http.Handler) {
		mux.Handle("GET "+path, handler)
		mux.Handle(path, otherMethods(path, []string{http.MethodGet}))
	}
	get("/healthz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { respond(w, o.Alive()) }))
	get("/readyz", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { respond(w, o.ready(r.Context())) }))
	get("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelError), MaxRequestsInFlight: maxScrapes, EnableOpenMetrics: true,
		ErrorHandling: promhttp.ContinueOnError, // what can be shown is
	}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusNotFound, fmt.Sprintf("%s is not here; there are /healthz, /readyz, /metrics, and %s, which "+
			"%[2]s/openapi.json describes", r.URL.Path, root))
	})
	mux.Handle(root+"/", newAPI(&o))
	if o.Flock {
		mountFlock(mux, &o)
	}
	if o.Disbatch {
		mountDisbatch(mux, &o)
	}
	return mux
}

// otherMethods answers requests for a path by methods that it does not have.
func otherMethods(path string, methods []string) http.Handler {
	if slices.Contains(methods, http.MethodGet) {
		methods = append(slices.Clone(methods), http.MethodHead)
	}
	slices.Sort(methods)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		problem(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s is asked for with %s, not with %s", path, strings.Join(methods, ", "), r.Method))
	})
}

// maxScrapes is how many may ask for metrics at a time.
const maxScrapes = 4

// ready says why the site is of no use now, nil if it is.
func (o *Options) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if _, err := o.Manager.Now(ctx); err != nil {
		return fmt.Errorf("cannot ask Redis: %w", err)
	}
	return o.Ready()
}

func respond(w http.ResponseWriter, err error) {
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		problem(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}
