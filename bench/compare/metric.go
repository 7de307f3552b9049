package main

import "strconv"

// metric is something that is measured.
type metric struct {
	name, title string
	// less says that less is better.
	less   bool
	digits int
}

func (m metric) format(v float64) string { return strconv.FormatFloat(v, 'f', m.digits, 64) }

// What is measured.
var (
	rate      = metric{name: "per_second", title: "tasks a second"}
	processed = metric{name: "processed_per_second", title: "without opening"}
	opened    = metric{name: "opened_per_second", title: "opened a second"}
	redisCPU  = metric{name: "redis_cpu_us", title: "µs of Redis a task", less: true}
	p50       = metric{name: "p50_ms", title: "p50 ms", less: true, digits: 2}
	p99       = metric{name: "p99_ms", title: "p99 ms", less: true, digits: 2}
)

func allMetrics() []metric { return []metric{rate, processed, opened, redisCPU, p50, p99} }
