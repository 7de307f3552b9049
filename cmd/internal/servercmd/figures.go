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

// figures are those of one server and of its Redis, beside those of the site.
type figures struct {
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
	passes  = prometheus.NewDesc("tdf_server_passes_total", "Passes of this server over the tasks that went through.", nil, nil)
	passAge = prometheus.NewDesc("tdf_server_pass_age_seconds", "For how long no pass of this server has got on.", nil, nil)
	moves   = prometheus.NewDesc("tdf_server_moves_total",
		"Moves of tasks that this server made, by event and the state they led to.", []string{"event", "to"}, nil)
	repairs = prometheus.NewDesc("tdf_server_repairs_total", "Records, lists and counts that this server has put right.", nil, nil)
)

// said are the lines of INFO that are figures.
var said = []struct {
	section, line string
	desc          *prometheus.Desc
}{
	{"memory", "used_memory", prometheus.NewDesc("tdf_redis_used_memory_bytes", "Memory that Redis takes.", nil, nil)},
	{"memory", "maxmemory", prometheus.NewDesc(
		"tdf_redis_max_memory_bytes", "Memory that Redis may take, 0 for all of its host.", nil, nil)},
	{"clients", "connected_clients", prometheus.NewDesc(
		"tdf_redis_connected_clients", "Connections to Redis, including those of other programs.", nil, nil)},
}

// infoTimeout bounds how long a scrape waits for INFO.
const infoTimeout = 2 * time.Second

// Describe names all figures.
func (f *figures) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{build, passes, passAge, moves, repairs} {
		out <- d
	}
	for _, s := range said {
		out <- s.desc
	}
}

// Collect gives what there is. What Redis does not say is missing.
func (f *figures) Collect(out chan<- prometheus.Metric) {
	give := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	s := f.stats()
	good := s.Good
	if good.IsZero() {
		good = f.since
	}
	give(build, prometheus.GaugeValue, 1, f.version, runtime.Version())
	give(passes, prometheus.CounterValue, float64(s.Passes))
	give(passAge, prometheus.GaugeValue, time.Since(good).Seconds())
	for m, n := range s.Moves {
		give(moves, prometheus.CounterValue, float64(n), string(m.Event), string(m.To))
	}
	give(repairs, prometheus.CounterValue, float64(s.Repairs))
	ctx, cancel := context.WithTimeout(context.Background(), infoTimeout)
	defer cancel()
	answers := map[string]map[string]string{}
	for _, line := range said {
		if _, asked := answers[line.section]; !asked {
			answer, err := f.redis.Info(ctx, line.section)
			if err != nil {
				f.log.Debug("could not ask Redis about itself", "error", err)
			}
			answers[line.section] = answer
		}
		if v, err := strconv.ParseFloat(answers[line.section][line.line], 64); err == nil {
			give(line.desc, prometheus.GaugeValue, v)
		}
	}
}
