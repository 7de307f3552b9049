package httpapi

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// mostNamed is how many queues, workers and nodes have metrics of their own. No label comes from what a submission says of a task.
const mostNamed = 1000

// site gives the metrics of a namespace, which it reads for each scrape. The cost depends on queues, nodes and workers, and not on the
// number of tasks.
type site struct {
	manager *manager.Manager
	log     *slog.Logger
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// The metrics of a site.
var (
	redisUp   = describe("tdf_redis_up", "1 if this scrape could read the site from Redis; if not, its other metrics are missing.")
	redisTime = describe("tdf_redis_scrape_seconds", "How long it took to read the site from Redis.")

	tasks      = describe("tdf_tasks", "Tasks that are in a state.", "state")
	leftOut    = describe("tdf_metrics_left_out", "Queues, workers and nodes beyond a thousand each, which have no metrics.", "what")
	queueTasks = describe("tdf_queue_tasks", "Tasks of a queue that wait, some of them for a later time, or run.", "queue", "state")
	queueDue   = describe("tdf_queue_due_tasks", "Tasks of a queue that could start now.", "queue")
	oldest     = describe("tdf_oldest_open_seconds", "For how long the head of a queue could have started; 0 if it could not.", "queue")
	paused     = describe("tdf_queue_paused", "1 if nothing is taken from a queue because somebody has paused it.", "queue")
	ended      = describe("tdf_tasks_ended_total", "Tasks that came to an outcome, also those retried then.", "queue", "outcome")
	retried    = describe("tdf_tasks_retried_total", "Of these, the tasks that were retried, each by a task of its own.", "queue", "outcome")

	workers     = describe("tdf_workers", "Workers that are in a state.", "state")
	slots       = describe("tdf_worker_slots", "Slots of a live worker, by what they do.", "worker", "node", "state")
	heartbeat   = describe("tdf_worker_heartbeat_age_seconds", "For how long a live worker has been silent.", "worker", "node")
	quarantined = describe("tdf_node_quarantined", "1 if a node gets no tasks but probes because it fails what others pass.", "node")
)

// Describe names none, as their number may change from scrape to scrape.
func (*site) Describe(chan<- *prometheus.Desc) {}

// Collect reads the site.
func (s *site) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	began := time.Now()
	o, err := s.manager.Overview(ctx, 0)
	var nodes []task.Node
	if err == nil {
		nodes, err = s.manager.Nodes(ctx)
	}
	give := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- metric(d, prometheus.GaugeValue, v, labels)
	}
	if give(redisUp, flag(err == nil)); err != nil {
		s.log.Warn("could not read the site for /metrics", "error", err)
		return
	}
	give(redisTime, time.Since(began).Seconds())
	for _, state := range statemachine.States() {
		give(tasks, float64(o.Counts[state]), string(state))
	}
	collectQueues(out, give, o.Queues, o.At)
	collectWorkers(give, o.Workers)
	for i := range nodes[:min(len(nodes), mostNamed)] {
		give(quarantined, flag(!nodes[i].Quarantined.IsZero()), nodes[i].Name)
	}
	give(leftOut, float64(max(0, len(nodes)-mostNamed)), "nodes")
}

// metric makes one whose labels may be any names that Redis holds.
func metric(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels []string) prometheus.Metric {
	for i, name := range labels {
		labels[i] = strings.ToValidUTF8(name, "\uFFFD")
	}
	return prometheus.MustNewConstMetric(d, kind, v, labels...)
}

type giver func(d *prometheus.Desc, v float64, labels ...string)

func collectQueues(out chan<- prometheus.Metric, give giver, queues []task.Queue, now time.Time) {
	count := func(d *prometheus.Desc, v int64, labels ...string) {
		out <- metric(d, prometheus.CounterValue, float64(v), labels)
	}
	for i := range queues[:min(len(queues), mostNamed)] {
		q := &queues[i]
		give(queueTasks, float64(q.Waiting), q.Name, string(statemachine.Open))
		give(queueTasks, float64(q.Running), q.Name, string(statemachine.Running))
		give(queueDue, float64(q.Due), q.Name)
		age := 0.0
		if !q.Oldest.IsZero() {
			age = max(0, now.Sub(q.Oldest).Seconds())
		}
		give(oldest, age, q.Name)
		give(paused, flag(q.Paused), q.Name)
		for _, outcome := range statemachine.Outcomes() {
			count(ended, q.Ended[outcome]+q.RetriedAs[outcome], q.Name, string(outcome))
			count(retried, q.RetriedAs[outcome], q.Name, string(outcome))
		}
	}
	give(leftOut, float64(max(0, len(queues)-mostNamed)), "queues")
}

func collectWorkers(give giver, all []task.Worker) {
	states, alive := map[task.WorkerState]int{}, 0
	for i := range all {
		w := &all[i]
		if states[w.State]++; !w.State.Alive() {
			continue
		}
		if alive++; alive > mostNamed {
			continue
		}
		give(slots, float64(w.Busy), w.Name, w.Node, "busy")
		give(slots, float64(w.Stuck), w.Name, w.Node, "stuck")
		give(slots, float64(max(0, w.Slots-w.Busy-w.Stuck)), w.Name, w.Node, "idle")
		give(heartbeat, time.Duration(w.Silent).Seconds(), w.Name, w.Node)
	}
	for _, state := range []task.WorkerState{task.WorkerReady, task.WorkerDraining, task.WorkerDrained, task.WorkerLost, task.WorkerStopped} {
		give(workers, float64(states[state]), string(state))
	}
	give(leftOut, float64(max(0, alive-mostNamed)), "workers")
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
