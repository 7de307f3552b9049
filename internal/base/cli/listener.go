package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
)

// Listener is an address on which a daemon answers over HTTP, and the setting that names it. Port 0 means any free one.
type Listener struct {
	Section, Key, Address string
	// CertFile and KeyFile are PEM files of a certificate and its key: with them it speaks TLS, and other hosts may reach it. They are
	// the settings cert_file and key_file of the section.
	CertFile, KeyFile string
	// Public allows an address that other hosts can reach also without TLS.
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
	own, err := l.certificate(log)
	if err != nil {
		return "", nil, err
	}
	listener, err := l.listen(ctx)
	if err != nil {
		return "", nil, err
	}
	if loopback(listener) {
		handler = guard(handler, own)
	}
	srv := &http.Server{
		Handler: handler, ReadTimeout: readTimeout, WriteTimeout: l.Timeout, IdleTimeout: idleTimeout, MaxHeaderBytes: mostHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what clients do wrong
	}
	scheme, serve := "http://", func() error { return srv.Serve(listener) }
	if own != nil {
		srv.TLSConfig = own.config()
		scheme, serve = "https://", func() error { return srv.ServeTLS(listener, "", "") }
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			log.Error(fmt.Sprintf("[%s] %s is not served any more", l.Section, l.Key), "error", err)
		}
	})
	return scheme + listener.Addr().String(), func() {
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
		return nil, l.refused(l.Key, l.Address, fmt.Sprintf("cannot be listened on: %v", err),
			"write another port, or 0 for any free one: each program needs its own", err)
	}
	if !l.Public && l.CertFile == "" && !loopback(listener) {
		_ = listener.Close()
		return nil, l.refused(l.Key, l.Address, "leads to "+listener.Addr().String()+", which is not a loopback address",
			"write 127.0.0.1 or [::1]", nil)
	}
	return listener, nil
}

// loopback reports whether only programs of this host can connect.
func loopback(listener net.Listener) bool {
	at, ok := listener.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

func (l Listener) refused(key, value, problem, remedy string, cause error) error {
	return &config.Error{
		Section: l.Section, Key: key, Value: value, Problem: problem, Remedy: remedy, Err: errors.Join(config.ErrInvalid, cause),
	}
}

// foreign is the problem of RFC 9457 that a request for another host gets.
const foreign = `{"type":"about:blank","title":"Forbidden","status":403,` +
	`"detail":"ask for localhost, or over TLS for a name of the certificate"}` + "\n"

// guard refuses requests for another host, which has none of the names of the certificate either: those of a web page whose domain
// resolves to this one.
func guard(next http.Handler, own *certificate) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && !own.names(host) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, foreign)
			return
		}
		next.ServeHTTP(w, r)
	})
}
