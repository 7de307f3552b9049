package cli

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/pprof"
)

// indexPath is what all addresses of profiles begin with.
const indexPath = "/debug/pprof/"

// serveProfiles answers to go tool pprof on the address of [tdf] pprof, a loopback address, and returns how to end that; with an
// empty one it does nothing. Port 0 means any free one, which the log names. The error is a *config.Error.
func serveProfiles(ctx context.Context, addr string, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	url, stop, err := Listener{Section: "tdf", Key: "pprof", Address: addr}.Serve(ctx, handlers(), log)
	if err != nil {
		return nil, err
	}
	log.Warn("profiles are served to every user of this host ([tdf] pprof)", "url", url+indexPath)
	return stop, nil
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
