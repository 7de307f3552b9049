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

// Door is an address that a daemon answers on, and the setting that names it: port 0 means any free one.
type Door struct {
	Section, Key, Address string
	// Open lets an address be served that other hosts can reach.
	Open bool
	// Timeout is the longest that an answer takes; 0 for no limit.
	Timeout time.Duration
}

const (
	// readTimeout bounds how long a client may take to say what it wants, idleTimeout how long it may say nothing between two requests.
	readTimeout, idleTimeout = 10 * time.Second, 2 * time.Minute
	// mostHeader bounds what it may say in the head of a request, in bytes.
	mostHeader = 32 << 10
	// farewell is how long the requests that are being answered may take once the daemon stops.
	farewell = 2 * time.Second
)

// Serve answers on the door until stop is called. That gives requests with a limit two seconds to end, and cuts off the rest. The error
// is a *config.Error.
func (d Door) Serve(ctx context.Context, handler http.Handler, log *slog.Logger) (url string, stop func(), err error) {
	listener, err := d.listen(ctx)
	if err != nil {
		return "", nil, err
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !d.Open || ok && at.IP.IsLoopback() {
		handler = guard(handler)
	}
	srv := &http.Server{
		Handler: handler, ReadTimeout: readTimeout, WriteTimeout: d.Timeout, IdleTimeout: idleTimeout, MaxHeaderBytes: mostHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what clients do wrong
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error(fmt.Sprintf("[%s] %s is not served any more", d.Section, d.Key), "error", err)
		}
	})
	return "http://" + listener.Addr().String(), func() {
		if d.Timeout > 0 {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
			defer cancel()
			_ = srv.Shutdown(ending)
		}
		_ = srv.Close()
		serving.Wait()
	}, nil
}

// listen makes sure that a name such as localhost leads to this host.
func (d Door) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", d.Address)
	if err != nil {
		return nil, d.refused(fmt.Sprintf("cannot be listened on: %v", err),
			"write another port, or 0 for any free one: each program needs its own", err)
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !d.Open && (!ok || !at.IP.IsLoopback()) {
		_ = listener.Close()
		return nil, d.refused("leads to "+listener.Addr().String()+", which is not a loopback address", "write 127.0.0.1 or [::1]", nil)
	}
	return listener, nil
}

func (d Door) refused(problem, remedy string, cause error) error {
	return &config.Error{
		Section: d.Section, Key: d.Key, Value: d.Address, Problem: problem, Remedy: remedy, Err: errors.Join(config.ErrInvalid, cause),
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
