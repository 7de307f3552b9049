package servercmd

import (
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tdf-go/tdf/server"
)

// metrics are those of one server and of its Redis, beside those of the site.
type metrics struct {
	stats   func() server.Stats
	version string
	since   time.Time
	redis   interface {
		Info(ctx context.Context, section string) (map[string]string, error)
	}
	log *slog.Logger
}

var (
	build   = prometheus.NewDesc("tdf_build_info", "1, with the version of the program.", []string{"version", "go"}, nil)
	passes  = prometheus.NewDesc("tdf_server_passes_total", "Passes of this server over the tasks that succeeded.", nil, nil)
	passAge = prometheus.NewDesc("tdf_server_pass_age_seconds", "Time since a pass of this server last made progress.", nil, nil)
	moves   = prometheus.NewDesc("tdf_server_moves_total",
		"Moves of tasks that this server made, by event and the state they led to.", []string{"event", "to"}, nil)
	repairs = prometheus.NewDesc("tdf_server_repairs_total", "Records, lists and counts that this server repaired.", nil, nil)
)

// info are the lines of INFO that are metrics, by section.
var info = map[string]map[string]*prometheus.Desc{
	"memory": {
		"used_memory": prometheus.NewDesc("tdf_redis_used_memory_bytes", "Memory that Redis uses.", nil, nil),
		"maxmemory":   prometheus.NewDesc("tdf_redis_max_memory_bytes", "Memory that Redis may use, 0 for all of its host.", nil, nil),
	},
	"clients": {
		"connected_clients": prometheus.NewDesc(
			"tdf_redis_connected_clients", "Connections to Redis, including those of other programs.", nil, nil),
	},
}

// infoTimeout bounds how long a scrape waits for INFO.
const infoTimeout = 2 * time.Second

// Describe names none: what Redis does not say is missing.
func (*metrics) Describe(chan<- *prometheus.Desc) {}

// Collect gives what there is.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	give := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	s := m.stats()
	last := s.Progress
	if last.IsZero() {
		last = m.since
	}
	give(build, prometheus.GaugeValue, 1, m.version, runtime.Version())
	give(passes, prometheus.CounterValue, float64(s.Passes))
	give(passAge, prometheus.GaugeValue, time.Since(last).Seconds())
	for move, n := range s.Moves {
		give(moves, prometheus.CounterValue, float64(n), string(move.Event), string(move.To))
	}
	give(repairs, prometheus.CounterValue, float64(s.Repairs))
	ctx, cancel := context.WithTimeout(context.Background(), infoTimeout)
	defer cancel()
	for section, lines := range info {
		said, err := m.redis.Info(ctx, section)
		if err != nil {
			m.log.Debug("could not ask Redis about itself", "error", err)
		}
		for line, d := range lines {
			if v, err := strconv.ParseFloat(said[line], 64); err == nil {
				give(d, prometheus.GaugeValue, v)
			}
		}
	}
}
