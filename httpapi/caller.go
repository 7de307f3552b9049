package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"golang.org/x/time/rate"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// bearer names the way in which a request proves who sends it.
const bearer = "token"

const (
	// mostBody is the longest body of a request that is read as a whole, bodyTimeout the longest time to send it.
	mostBody    = 1 << 20
	bodyTimeout = 10 * time.Second
	// perSecond is how many requests one token may send, or one address without a token that fits, burst how many at once.
	perSecond, burst = 100, 200
	// mostCallers is how many tokens and addresses are told apart.
	mostCallers = 10_000
)

// caller is who sends a request.
type caller struct {
	task.Token

	// request is the id of the request, from names the address that it came from, text is the token itself.
	request, from, text string
	sent                *sent
}

type callerKey struct{}

// callerOf is who sends the request that ctx belongs to.
func callerOf(ctx context.Context) *caller {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		return c
	}
	return &caller{}
}

func requestOf(ctx context.Context) string { return callerOf(ctx).request }

// change goes with every change that a request makes.
func (c *caller) change(reason string, dryRun bool) manager.ChangeOptions {
	return manager.ChangeOptions{By: "token " + c.Name, Reason: reason, DryRun: dryRun}
}

// requestHeader is the header with the id of a request: that of the client, if it sends a usable one.
const requestHeader = "X-Request-ID"

// known lets through requests with a token that fits, at the rate that a token may have by that clock.
func (a *api) known(next http.Handler, now func() time.Time) http.Handler {
	limits := &limits{now: now, of: map[string]*rate.Limiter{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &caller{request: requestID(r), from: address(r), text: bearerOf(r)}
		w.Header().Set(requestHeader, c.request)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if strings.HasPrefix(r.URL.Path, root+"/openapi") {
			next.ServeHTTP(w, r)
			return
		}
		var err error
		if c.Token, err = a.m.Authenticate(r.Context(), c.text); errors.Is(err, task.ErrToken) {
			if !limits.allow(w, "address "+c.from) {
				return
			}
			a.log.Warn("a request without a valid token", "request", c.request, "from", c.from, "path", r.URL.Path)
			w.Header().Set("WWW-Authenticate", `Bearer realm="tdf"`)
			problem(w, http.StatusUnauthorized, "send Authorization: Bearer and a token; tdf-manager token add makes one")
			return
		} else if err != nil {
			w.Header().Set("Retry-After", "1")
			problem(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		if limits.allow(w, "token "+c.ID) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
		}
	})
}

// may lets through callers whose role may do an operation, and logs changes that are asked for.
func (a *api) may(need task.TokenRole) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		c := callerOf(ctx.Context())
		c.sent = sentBy(ctx)
		if !c.Role.May(need) {
			_, w := humago.Unwrap(ctx)
			problem(w, http.StatusForbidden, fmt.Sprintf("token %s has the role %s; this takes %s", c.Name, c.Role, need))
			return
		}
		if worker := ctx.Param("name"); need == task.TokenWork && worker != c.Name {
			_, w := humago.Unwrap(ctx)
			problem(w, http.StatusForbidden, fmt.Sprintf("token %[1]s speaks for worker %[1]s, not for %[2]q", c.Name, worker))
			return
		}
		if name := repeated(ctx); name != "" {
			_, w := humago.Unwrap(ctx)
			problem(w, http.StatusUnprocessableEntity, fmt.Sprintf("query.%s is given more than once: write its values as one, with commas", name))
			return
		}
		if need != task.TokenRead && !everyday(ctx.Operation()) {
			a.log.Info("asked over HTTP", "request", c.request, "operation", ctx.Operation().OperationID, "token", c.Name, "from", c.from)
		}
		next(ctx)
	}
}

// everyday reports whether an operation is what workers ask again and again.
func everyday(op *huma.Operation) bool {
	return slices.Contains(op.Tags, workTag) && (op.Method == http.MethodPut || !strings.HasSuffix(op.Path, "/session"))
}

// repeated is a parameter of the query that is given more than once and may not be: huma would take the first one. Empty for none.
func repeated(ctx huma.Context) string {
	url := ctx.URL()
	query := url.Query()
	for _, p := range ctx.Operation().Parameters {
		if p.In == "query" && len(query[p.Name]) > 1 && (p.Explode == nil || !*p.Explode) {
			return p.Name
		}
	}
	return ""
}

// requestID is the id that a client has given to its request, or a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get(requestHeader)
	odd := func(c rune) bool {
		return !strings.ContainsRune("-_.", c) && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
	}
	if id == "" || len(id) > 64 || strings.ContainsFunc(id, odd) {
		return rand.Text()
	}
	return id
}

func bearerOf(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// limits bounds how often each caller may ask.
type limits struct {
	now func() time.Time
	mu  sync.Mutex
	of  map[string]*rate.Limiter
}

// allow reports whether the caller may ask now, and answers if not.
func (l *limits) allow(w http.ResponseWriter, name string) bool {
	l.mu.Lock()
	limiter := l.of[name]
	if limiter == nil {
		if len(l.of) >= mostCallers {
			clear(l.of)
		}
		limiter = rate.NewLimiter(perSecond, burst)
		l.of[name] = limiter
	}
	l.mu.Unlock()
	if limiter.AllowN(l.now(), 1) {
		return true
	}
	w.Header().Set("Retry-After", "1")
	problem(w, http.StatusTooManyRequests, fmt.Sprintf("%s asks more than %d times a second", name, perSecond))
	return false
}
