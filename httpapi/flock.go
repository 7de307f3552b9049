package httpapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// flock serves Flock's interface: functions are records, its tasks are series, and its workers are sessions of the gateway. All that
// lasts is in Redis, so any server of the site answers any request.
type flock struct {
	m       *manager.Manager
	gateway *worker.Gateway
	log     *slog.Logger
	gate    *gate
	// process and claims name what is claimed: the numbers rise.
	process string
	claims  atomic.Int64
	// turns let a worker claim one task at a time: Redis remembers its last claim only.
	turns [64]sync.Mutex
}

// flockPerSecond is how many requests one token may send: all workers may have the same.
const flockPerSecond = 2000

// flockVerb is what one method of a path does, for those with a role that may.
type flockVerb struct {
	may func(task.TokenRole) bool
	do  func(ctx context.Context, q *flockRequest) (*flockAnswer, error)
}

func mayRead(r task.TokenRole) bool   { return r.May(task.TokenRead) }
func mayChange(r task.TokenRole) bool { return r.May(task.TokenOperate) }

// mayWork is not only for tokens that work: Flock's workers schedule tasks as well, and have one token.
func mayWork(r task.TokenRole) bool { return r.May(task.TokenWork) || r.May(task.TokenOperate) }

// flockAnswer is an answer to be written: JSON, or a page.
type flockAnswer struct {
	status   int
	location string
	body     any
	page     []byte
}

// mountFlock serves Flock's paths, at the root.
func mountFlock(mux *http.ServeMux, o *Options) {
	f := &flock{m: o.Manager, gateway: o.Gateway, log: o.Logger, process: "f" + rand.Text()}
	f.gate = &gate{
		m: o.Manager, log: o.Logger, limits: newLimits(flockPerSecond, o.now), token: tokenOf, challenge: `Basic realm="tdf"`, refuse: flockError,
		missing: "send Authorization: Bearer and a token, or Basic with any user and the token as password; tdf-manager token add makes one",
	}
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	add := flockVerb{mayChange, f.addFunction}
	fn := map[string]flockVerb{get: {mayRead, f.getFunction}, http.MethodHead: {mayRead, f.getFunction}}
	addTask, addWorker := flockVerb{mayChange, f.addTask}, flockVerb{mayWork, f.addWorker}
	reserve := flockVerb{mayWork, f.reserve}
	for path, verbs := range map[string]map[string]flockVerb{
		"/{$}":  {get: {mayRead, f.page}, http.MethodHead: {mayRead, f.page}},
		"/func": {post: add}, "/func/{$}": {post: add}, "/func/{fid}": fn, "/fun/{fid}": fn,
		"/task": {post: addTask}, "/task/{$}": {post: addTask},
		"/task/{tid}": {
			get: {mayRead, f.getTask}, http.MethodHead: {mayRead, f.getTask}, put: {mayChange, f.setTask}, del: {mayChange, f.removeTask},
		},
		"/worker": {post: addWorker}, "/worker/{$}": {post: addWorker}, "/worker/{wid}": {put: {mayWork, f.beat}},
		"/worker/{wid}/task":       {get: reserve, post: reserve}, // no HEAD, which would reserve as well
		"/worker/{wid}/task/{tid}": {put: {mayWork, f.complete}},
		"/func/":                   nil, "/fun/": nil, "/task/": nil, "/worker/": nil,
	} {
		mux.Handle(path, f.serve(verbs))
	}
}

// serve answers the requests of a path.
func (f *flock) serve(verbs map[string]flockVerb) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := newCaller(w, r)
		if elsewhere(r) {
			flockError(w, http.StatusForbidden, "pages of other sites may not ask; ask without a browser, or from a page of this site")
			return
		}
		if c = f.gate.admit(w, r, c); c == nil {
			return
		}
		verb, ok := verbs[r.Method]
		switch {
		case verbs == nil:
			flockError(w, http.StatusNotFound, r.URL.Path+" is not here; there are /func, /fun/FID, /task, /task/TID, /worker and /worker/WID")
		case !ok:
			w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(verbs)), ", "))
			flockError(w, http.StatusMethodNotAllowed, r.URL.Path+" is not asked for with "+r.Method)
		case !verb.may(c.Role):
			flockError(w, http.StatusForbidden, fmt.Sprintf("token %s has the role %s, which may not do this", c.Name, c.Role))
		default:
			f.answer(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)), verb)
		}
	})
}

func (f *flock) answer(w http.ResponseWriter, r *http.Request, verb flockVerb) {
	q := &flockRequest{caller: callerOf(r.Context()), http: r}
	err := q.read(w)
	var a *flockAnswer
	if err == nil {
		a, err = verb.do(r.Context(), q)
	}
	if err != nil {
		f.refuse(w, r, err)
		return
	}
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	switch {
	case a.page != nil:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		_, _ = w.Write(a.page)
	case a.body == nil:
		w.WriteHeader(a.status)
	default:
		writeFlock(w, a.status, a.body)
	}
}

// refuse answers what cannot be done.
func (f *flock) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if taken, ok := errors.AsType[*takenError](err); ok {
		writeFlock(w, http.StatusConflict, map[string]any{"error": taken.Error(), "tid": taken.tid})
		return
	}
	err = failure(r.Context(), f.log, err)
	status, detail := http.StatusInternalServerError, err.Error()
	if p, ok := errors.AsType[*huma.ErrorModel](err); ok {
		status, detail = p.Status, p.Detail
	}
	if more, ok := errors.AsType[huma.HeadersError](err); ok {
		maps.Copy(w.Header(), more.GetHeaders())
	}
	if status == http.StatusUnprocessableEntity { // Flock's clients know this one
		status = http.StatusBadRequest
	}
	flockError(w, status, detail)
}

// flockError is a refusal in Flock's form.
func flockError(w http.ResponseWriter, status int, detail string) {
	writeFlock(w, status, map[string]string{"error": detail})
}

func writeFlock(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body) //nolint:errchkjson // all of ours can be written; else the client is gone
}

// tokenOf is the token of a request: a bearer token, or for old clients the password of any user.
func tokenOf(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	return bearerOf(r)
}

// elsewhere reports whether a page of another site asks: a browser would send along the password that its user has given.
func elsewhere(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	from, err := url.Parse(origin)
	return err != nil || from.Host != r.Host
}

// idOf is the number that texts have: at least 1, and small enough for JavaScript.
func idOf(texts ...string) int64 {
	h := sha256.New()
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(text), text) // it cannot fail
	}
	return max(1, number53(h.Sum(nil)))
}

func number53(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) >> 11) }

// notHere is the refusal of something that is not there.
func notHere(what string, id int64, remedy string) error {
	return newProblem(http.StatusNotFound, what+" "+strconv.FormatInt(id, 10)+" is not there; "+remedy)
}
