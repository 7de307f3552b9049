package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// streams are what bounds answers that are sent piece by piece.
type streams struct {
	events, outputs, waits room
	// silence is after how long a stream of events says that it is there, patience how long a client may take to read a piece, and
	// recheck after how long the token of a stream is looked at again, by authenticate.
	silence, patience, recheck time.Duration
	authenticate               func(ctx context.Context, text string) (task.Token, error)

	mu      sync.Mutex
	serving map[*http.Server]context.Context // each until its server stops
}

func newStreams(m *manager.Manager) *streams {
	return &streams{
		// Outputs that are followed, or fill a scratch file, are fewer than the connections on which a server with one processor waits
		// for Redis.
		events: make(room, 100), outputs: make(room, 8), waits: make(room, 100),
		silence: 15 * time.Second, patience: sendTimeout, recheck: time.Minute,
		authenticate: m.Authenticate, serving: map[*http.Server]context.Context{},
	}
}

// room has one for each stream that is open; its capacity is the most.
type room chan struct{}

// enter lets one more in, until leave is called for it.
func (r room) enter(what string) error {
	select {
	case r <- struct{}{}:
		return nil
	default:
		return retryAfter(newProblem(http.StatusServiceUnavailable, fmt.Sprintf("%d %s are open, which is the most; end one", cap(r), what)))
	}
}

func (r room) leave() { <-r }

// lasting ends ctx, that of a request, also once its server stops, which waits for what is under way, and soon after its token ceases
// to be valid.
func (a *api) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := a.streams.untilStop(ctx)
	go func() {
		recheck := time.NewTicker(a.streams.recheck)
		defer recheck.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-recheck.C:
			}
			if err := a.streams.check(ctx); err != nil {
				c := callerOf(ctx)
				a.log.Warn("a stream ends", "request", c.request, "token", c.Name, "from", c.from, "error", err)
				end()
			}
		}
	}()
	return ctx, end
}

// check is the error of a token that is not valid any more. While Redis is away nobody knows.
func (s *streams) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if _, err := s.authenticate(ctx, callerOf(ctx).text); errors.Is(err, task.ErrToken) {
		return err
	}
	return nil
}

// untilStop ends ctx also once its server stops.
func (s *streams) untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	server, ok := ctx.Value(http.ServerContextKey).(*http.Server)
	if !ok {
		return ctx, cancel
	}
	forget := context.AfterFunc(s.lifeOf(server), cancel)
	return ctx, func() {
		forget()
		cancel()
	}
}

// lifeOf ends when the server begins to stop.
func (s *streams) lifeOf(server *http.Server) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	life, known := s.serving[server]
	if !known {
		ctx, stopped := context.WithCancel(context.Background())
		server.RegisterOnShutdown(stopped)
		life, s.serving[server] = ctx, ctx
	}
	return life
}

// pieces gives the client its time for each piece that is written, in the place of one for the whole answer.
type pieces struct {
	http.ResponseWriter

	control  *http.ResponseController
	patience time.Duration
	refused  bool
}

func (s *streams) pieces(w http.ResponseWriter) *pieces {
	return &pieces{ResponseWriter: w, control: http.NewResponseController(w), patience: s.patience}
}

// WriteHeader makes a problem of ranges that cannot be sent.
func (p *pieces) WriteHeader(status int) {
	if status != http.StatusRequestedRangeNotSatisfiable {
		p.ResponseWriter.WriteHeader(status)
		return
	}
	p.refused = true
	p.Header().Del("Content-Disposition")
	problem(p.ResponseWriter, status, "the header Range is no part of what is here; write one such as bytes=0-99, or bytes=-100 for the end")
}

// Write implements [io.Writer].
func (p *pieces) Write(text []byte) (int, error) {
	if p.refused { // the problem says it
		return len(text), nil
	}
	p.more()
	return p.ResponseWriter.Write(text) //nolint:wrapcheck // it stands in the place of that
}

// send writes text, and sends it now. After it there is no limit: HTTP/2 would obey it between two pieces as well. The error is that of a
// client that is gone, or does not read.
func (p *pieces) send(text []byte) error {
	_, err := p.Write(text)
	if err == nil {
		err = p.control.Flush()
	}
	p.until(time.Time{})
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// more gives the client its time for the next piece, or for the end.
func (p *pieces) more() { p.until(time.Now().Add(p.patience)) }

// until sets until when a client must have read. Where there are no deadlines the server has to do without.
func (p *pieces) until(t time.Time) { _ = p.control.SetWriteDeadline(t) }
