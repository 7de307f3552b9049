package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
)

// Listener is an address on which a daemon answers over HTTP, and the setting that names it. Port 0 means any free one.
type Listener struct {
	Section, Key, Address string
	// Public allows an address that other hosts can reach.
	Public bool
	// Timeout is the longest that an answer takes; 0 for no limit.
	Timeout time.Duration
}

const (
	// readTimeout bounds how long a client may take to send a request, idleTimeout how long it may rest between two.
	readTimeout, idleTimeout = 10 * time.Second, 2 * time.Minute
	// mostHeader is the most bytes of the header of a request.
	mostHeader = 32 << 10
	// farewell is how long requests may take once the daemon stops.
	farewell = 2 * time.Second
)

// Serve answers until stop is called, which with a Timeout gives requests two seconds to end, and then cuts them off. The error is a
// *config.Error.
func (l Listener) Serve(ctx context.Context, handler http.Handler, log *slog.Logger) (url string, stop func(), err error) {
	listener, err := l.listen(ctx)
	if err != nil {
		return "", nil, err
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !l.Public || ok && at.IP.IsLoopback() {
		handler = guard(handler)
	}
	srv := &http.Server{
		Handler: handler, ReadTimeout: readTimeout, WriteTimeout: l.Timeout, IdleTimeout: idleTimeout, MaxHeaderBytes: mostHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what clients do wrong
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error(fmt.Sprintf("[%s] %s is not served any more", l.Section, l.Key), "error", err)
		}
	})
	return "http://" + listener.Addr().String(), func() {
		if l.Timeout > 0 {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
			defer cancel()
			_ = srv.Shutdown(ending)
		}
		_ = srv.Close()
		serving.Wait()
	}, nil
}

// listen makes sure that a name such as localhost leads to this host.
func (l Listener) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", l.Address)
	if err != nil {
		return nil, l.refused(fmt.Sprintf("cannot be listened on: %v", err),
			"write another port, or 0 for any free one: each program needs its own", err)
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !l.Public && (!ok || !at.IP.IsLoopback()) {
		_ = listener.Close()
		return nil, l.refused("leads to "+listener.Addr().String()+", which is not a loopback address", "write 127.0.0.1 or [::1]", nil)
	}
	return listener, nil
}

func (l Listener) refused(problem, remedy string, cause error) error {
	return &config.Error{
		Section: l.Section, Key: l.Key, Value: l.Address, Problem: problem, Remedy: remedy, Err: errors.Join(config.ErrInvalid, cause),
	}
}

// guard refuses requests for another host: those of a web page whose domain resolves to this one.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "ask for localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
