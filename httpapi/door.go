package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// door serves the interface of an older system: refusals are {"error": "..."}, and a token may come as a password.
type door struct {
	log  *slog.Logger
	gate *gate
	// paths are those that there are, for requests for others.
	paths string
}

func newDoor(o *Options, perSecond int, paths string) door {
	return door{log: o.Logger, paths: paths, gate: &gate{
		m: o.Manager, log: o.Logger, limits: newLimits(perSecond, o.now), token: tokenOf, challenge: `Basic realm="tdf"`, refuse: doorError,
		missing: "send Authorization: Bearer and a token, or Basic with any user and the token as password; tdf-manager token add makes one",
	}}
}

// doorVerb is what one method of a path does, for those with a role that may.
type doorVerb struct {
	may func(task.TokenRole) bool
	do  func(ctx context.Context, q *doorRequest) (*doorAnswer, error)
	// list says that the body is a list, and may be long; work that it opens tasks, or is what workers do all the time: it is in no log
	// of changes.
	list, work bool
}

func mayRead(r task.TokenRole) bool   { return r.May(task.TokenRead) }
func maySubmit(r task.TokenRole) bool { return r.May(task.TokenSubmit) }
func mayChange(r task.TokenRole) bool { return r.May(task.TokenOperate) }

// mayWork is not only for tokens that work: Flock's workers schedule tasks as well, and have one token.
func mayWork(r task.TokenRole) bool { return r.May(task.TokenWork) || r.May(task.TokenOperate) }

// doorAnswer is an answer to be written: JSON, or a page.
type doorAnswer struct {
	status   int
	location string
	body     any
	pretty   bool
	page     []byte
}

// serve answers the requests of a path.
func (d *door) serve(verbs map[string]doorVerb) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := newCaller(w, r)
		if elsewhere(r) {
			doorError(w, http.StatusForbidden, "pages of other sites may not ask; ask without a browser, or from a page of this site")
			return
		}
		if c = d.gate.admit(w, r, c); c == nil {
			return
		}
		verb, ok := verbs[r.Method]
		switch {
		case verbs == nil:
			doorError(w, http.StatusNotFound, r.URL.Path+" is not here; there are "+d.paths)
		case !ok:
			w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(verbs)), ", "))
			doorError(w, http.StatusMethodNotAllowed, r.URL.Path+" is not asked for with "+r.Method)
		case !verb.may(c.Role):
			doorError(w, http.StatusForbidden, fmt.Sprintf("token %s has the role %s, which may not do this", c.Name, c.Role))
		default:
			d.answer(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)), verb)
		}
	})
}

func (d *door) answer(w http.ResponseWriter, r *http.Request, verb doorVerb) {
	q := &doorRequest{caller: callerOf(r.Context()), http: r}
	err := q.read(w, verb.list)
	var a *doorAnswer
	if err == nil {
		a, err = d.changed(r.Context(), q, verb)
	}
	if err != nil {
		d.refuse(w, r, err)
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
		writeDoor(w, a.status, a.body, a.pretty)
	}
}

// changed does what the verb does; what that changes is one entry of the log of changes.
func (d *door) changed(ctx context.Context, q *doorRequest, verb doorVerb) (a *doorAnswer, err error) {
	if verb.work {
		return verb.do(manager.WithCaller(ctx, "", ""), q)
	}
	err = d.gate.m.Logged(q.named(ctx), "", "", q.change("", false), func(ctx context.Context) error {
		a, err = verb.do(ctx, q)
		return err
	})
	return a, err
}

// refuse answers what cannot be done.
func (d *door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	err = failure(r.Context(), d.log, err)
	status, detail := http.StatusInternalServerError, err.Error()
	if p, ok := errors.AsType[*huma.ErrorModel](err); ok {
		status, detail = p.Status, p.Detail
	}
	if more, ok := errors.AsType[huma.HeadersError](err); ok {
		maps.Copy(w.Header(), more.GetHeaders())
	}
	if status == http.StatusUnprocessableEntity { // old clients know this one
		status = http.StatusBadRequest
	}
	doorError(w, status, detail)
}

// doorError is a refusal in the form of a door.
func doorError(w http.ResponseWriter, status int, detail string) {
	writeDoor(w, status, map[string]string{"error": detail}, false)
}

func writeDoor(w http.ResponseWriter, status int, body any, pretty bool) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if pretty {
		enc.SetIndent("", "  ")
	}
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
