package workercmd

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/worker"
)

// metrics are those of one worker: what it has seen of the rounds that it reported.
type metrics struct {
	rounds      *prometheus.CounterVec
	waited, ran *prometheus.HistogramVec

	mu     sync.Mutex
	queues map[string]bool // with metrics of their own
}

// mostQueues is how many queues have metrics of their own. Those of others have no name.
const mostQueues = 1000

// spans are the bounds of the histograms: from programs of milliseconds to those of days.
var spans = []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 300, 1800, 3600, 6 * 3600, 24 * 3600}

// ends are the words for how a round ended, by what was reported.
var ends = map[statemachine.Event]string{
	statemachine.Report: "succeeded", statemachine.StopOverdue: "timed_out", statemachine.Terminate: "cancelled",
	statemachine.HandBack: "handed_back",
}

func newMetrics() *metrics {
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: spans}, []string{"queue"})
	}
	return &metrics{
		rounds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tdf_worker_rounds_total", Help: "Rounds that this worker reported, by how they ended.",
		}, []string{"queue", "end"}),
		waited: histogram("tdf_worker_wait_seconds", "How long tasks could have started before this worker began a round of them."),
		ran:    histogram("tdf_worker_run_seconds", "How long rounds took on this worker, the fetch of the program included."),
		queues: map[string]bool{},
	}
}

// reported counts a round.
func (m *metrics) reported(r worker.Reported) {
	end, queue := ends[r.Event], m.queue(r.Queue)
	switch {
	case r.Refused != nil:
		end = "refused"
	case r.Failed:
		end = "failed"
	}
	m.rounds.WithLabelValues(queue, end).Inc()
	m.ran.WithLabelValues(queue).Observe(r.Ran.Seconds())
	if r.Waited >= 0 {
		m.waited.WithLabelValues(queue).Observe(r.Waited.Seconds())
	}
}

// queue is the label of a queue.
func (m *metrics) queue(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.queues[name] && len(m.queues) == mostQueues {
		return ""
	}
	m.queues[name] = true
	return strings.ToValidUTF8(name, "\uFFFD")
}

// handler answers a scrape.
func (m *metrics) handler(name, namespace string) http.Handler {
	registry := prometheus.NewRegistry()
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tdf_build_info", Help: "1, with the version of the program.",
		ConstLabels: prometheus.Labels{"version": cli.ThisBuild().Version, "go": runtime.Version()},
	}, func() float64 { return 1 })
	prometheus.WrapRegistererWith(prometheus.Labels{"namespace": namespace, "worker": name}, registry).
		MustRegister(m.rounds, m.waited, m.ran, build)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux
}

// scrapeTimeout is the longest that an answer may take.
const scrapeTimeout = 30 * time.Second

// serve answers where [http] worker_listen says, until stop is called.
func (m *metrics) serve(ctx context.Context, name string, cfg *config.File, log *slog.Logger) (stop func(), err error) {
	at := cli.Listener{
		Section: "http", Key: "worker_listen", Address: cfg.HTTP.WorkerListen, CertFile: cfg.HTTP.CertFile, KeyFile: cfg.HTTP.KeyFile,
		Public: cfg.HTTP.Insecure, Timeout: scrapeTimeout,
	}
	url, stop, err := at.Serve(ctx, m.handler(name, cfg.TDF.Namespace), log)
	if err == nil {
		log.Info("answering with metrics", "url", url+"/metrics")
	}
	return stop, err
}
