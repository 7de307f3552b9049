package servercmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/httpapi"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/worker"
)

// serveHTTP answers where [http] listen says, until stop is called.
func serveHTTP(
	ctx context.Context, site *tdf.Site, s *server.Server, name string, cfg *config.File, log *slog.Logger,
) (stop func(), err error) {
	if cfg.HTTP.Listen == "" {
		return func() {}, nil
	}
	log = log.With("server", name)
	gateway, err := worker.NewGateway(site, httpapi.MostWaiting) //nolint:contextcheck // it listens until it is closed
	if err != nil {
		return nil, err
	}
	watch := &watch{stats: s.Stats, since: time.Now(), round: cfg.Server.RoundDuration}
	handler := httpapi.New(httpapi.Options{ //nolint:contextcheck // each request has its own
		Manager: manager.New(site, name, manager.Options{Logger: log}), Gateway: gateway, Alive: watch.alive, Ready: watch.ready, Logger: log,
		Flock: cfg.HTTP.Flock, Disbatch: cfg.HTTP.Disbatch,
		Collectors: []prometheus.Collector{
			&metrics{stats: s.Stats, version: cli.ThisBuild().Version, since: watch.since, redis: site.Internal.Store, log: log},
		},
	})
	at := cli.Listener{
		Section: "http", Key: "listen", Address: cfg.HTTP.Listen, CertFile: cfg.HTTP.CertFile, KeyFile: cfg.HTTP.KeyFile,
		Public: cfg.HTTP.Insecure, Timeout: answerTimeout,
	}
	url, end, err := at.Serve(ctx, handler, log)
	if err != nil {
		return nil, errors.Join(err, gateway.Close())
	}
	log.Info("answering over HTTP", "url", url)
	return func() {
		end()
		_ = gateway.Close() // nobody asks any more
	}, nil
}

// answerTimeout is the longest that an answer may take.
const answerTimeout = 30 * time.Second

// watch tells from the metrics of a server whether it works.
type watch struct {
	stats func() server.Stats
	since time.Time
	round time.Duration // the longest time between two passes
}

// stuckAfter is how long a server may be inactive before only a restart helps. A pass that Redis does not answer fails earlier, and
// one with much to do makes one call after the other.
const stuckAfter = time.Minute

// alive says what is wrong with the process.
func (w *watch) alive() error {
	last := w.stats().Active
	if last.IsZero() {
		last = w.since
	}
	if age := time.Since(last); age > stuckAfter+w.round {
		return fmt.Errorf("no pass over the tasks has made progress for %v", age.Round(time.Second))
	}
	return nil
}

// ready says why nothing is settled now.
func (w *watch) ready() error {
	s := w.stats()
	switch {
	case s.Active.IsZero():
		return fmt.Errorf("the first pass over the tasks has not ended, %v after the start", time.Since(w.since).Round(time.Millisecond))
	case s.Err != nil:
		return fmt.Errorf("the last pass over the tasks failed: %w", s.Err)
	default:
		return w.alive()
	}
}
