package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
)

const (
	// headerTimeout bounds how long a client may take to say what it wants.
	headerTimeout = 10 * time.Second
	// indexPath is what all addresses of profiles begin with.
	indexPath = "/debug/pprof/"
)

// serveProfiles answers to go tool pprof on the address of [tdf] pprof, a loopback address, and returns how to end that; with an
// empty one it does nothing. Port 0 means any free one, which the log names. The error is a *config.Error.
func serveProfiles(ctx context.Context, addr string, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	listener, err := listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: guard(handlers()), ReadHeaderTimeout: headerTimeout}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("profiles are not served any more", "error", err)
		}
	})
	log.Warn("profiles are served to every user of this host ([tdf] pprof)", "url", "http://"+listener.Addr().String()+indexPath)
	return func() {
		_ = srv.Close() // also the profiles that are being made
		serving.Wait()
	}, nil
}

// listen makes sure that a name such as localhost leads to this host.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, refused(addr, fmt.Sprintf("cannot be listened on: %v", err),
			"write another port, or 0 for any free one: each program needs its own", err)
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		_ = listener.Close()
		return nil, refused(addr, "leads to "+listener.Addr().String()+", which is not a loopback address", "write 127.0.0.1 or [::1]", nil)
	}
	return listener, nil
}

func refused(addr, problem, remedy string, cause error) error {
	return &config.Error{
		Section: "tdf", Key: "pprof", Value: addr, Problem: problem, Remedy: remedy, Err: errors.Join(config.ErrInvalid, cause),
	}
}

func handlers() *http.ServeMux {
	mux := http.NewServeMux()
	for path, handler := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		mux.HandleFunc(indexPath+path, handler)
	}
	return mux
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
