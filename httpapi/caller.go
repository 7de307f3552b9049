package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
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
	// perSecond is how many requests one token may send, or one address without a token that fits.
	perSecond = 100
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
	return manager.ChangeOptions{By: c.by(), Reason: reason, DryRun: dryRun}
}

func (c *caller) by() string { return "token " + c.Name }

// named lets all that is changed with ctx stand in the log of changes.
func (c *caller) named(ctx context.Context) context.Context {
	return manager.WithCaller(ctx, c.by(), c.request)
}

// requestHeader is the header with the id of a request: that of the client, if it sends a usable one.
const requestHeader = "X-Request-ID"

// gate lets through requests with a token that fits, at the rate that a token may have. Each interface refuses in its own form.
type gate struct {
	m      *manager.Manager
	log    *slog.Logger
	limits *limits
	// token is the text that a request shows, challenge the header that asks for one, and missing says how to send it.
	token              func(*http.Request) string
	challenge, missing string
	refuse             func(w http.ResponseWriter, status int, detail string)
}

// admit returns who sends a request, nil if it was refused.
func (g *gate) admit(w http.ResponseWriter, r *http.Request, c *caller) *caller {
	c.text = g.token(r)
	var err error
	if c.Token, err = g.m.Authenticate(r.Context(), c.text); errors.Is(err, task.ErrToken) {
		if g.allow(w, "address "+c.from) {
			g.log.Warn("a request without a valid token", "request", c.request, "from", c.from, "path", r.URL.Path)
			w.Header().Set("WWW-Authenticate", g.challenge)
			g.refuse(w, http.StatusUnauthorized, g.missing)
		}
		return nil
	} else if err != nil {
		w.Header().Set("Retry-After", "1")
		g.refuse(w, http.StatusServiceUnavailable, err.Error())
		return nil
	}
	if !g.allow(w, "token "+c.ID) {
		return nil
	}
	return c
}

// allow reports whether a caller may ask now, and answers if not.
func (g *gate) allow(w http.ResponseWriter, name string) bool {
	if g.limits.allow(name) {
		return true
	}
	w.Header().Set("Retry-After", "1")
	g.refuse(w, http.StatusTooManyRequests, fmt.Sprintf("%s asks more than %d times a second", name, g.limits.perSecond))
	return false
}

// newCaller is who sends a request, as far as it is known without a token. It sets the headers that each answer has.
func newCaller(w http.ResponseWriter, r *http.Request) *caller {
	c := &caller{request: requestID(r), from: address(r)}
	w.Header().Set(requestHeader, c.request)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return c
}

// known lets through requests with a token that fits, and those for the description.
func (a *api) known(next http.Handler, now func() time.Time) http.Handler {
	gate := &gate{
		m: a.m, log: a.log, limits: newLimits(perSecond, now), token: bearerOf, challenge: `Bearer realm="tdf"`, refuse: problem,
		missing: "send Authorization: Bearer and a token; tdf-manager token add makes one",
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := newCaller(w, r)
		if strings.HasPrefix(r.URL.Path, root+"/openapi") {
			next.ServeHTTP(w, r)
			return
		}
		if c = gate.admit(w, r, c); c != nil {
			next.ServeHTTP(w, r.WithContext(c.named(context.WithValue(r.Context(), callerKey{}, c))))
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

// limits bounds how often each caller may ask: so many times a second, and twice that at once.
type limits struct {
	perSecond int
	now       func() time.Time
	mu        sync.Mutex
	of        map[string]*rate.Limiter
}

// newLimits goes by that clock, nil for time.Now.
func newLimits(perSecond int, now func() time.Time) *limits {
	if now == nil {
		now = time.Now
	}
	return &limits{perSecond: perSecond, now: now, of: map[string]*rate.Limiter{}}
}

// allow reports whether the caller may ask now.
func (l *limits) allow(name string) bool {
	l.mu.Lock()
	limiter := l.of[name]
	if limiter == nil {
		if len(l.of) >= mostCallers {
			clear(l.of)
		}
		limiter = rate.NewLimiter(rate.Limit(l.perSecond), 2*l.perSecond)
		l.of[name] = limiter
	}
	l.mu.Unlock()
	return limiter.AllowN(l.now(), 1)
}
