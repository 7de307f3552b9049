package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/contend"
	"github.com/tdf-go/tdf/bench/crew"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// The names of contenders in the tables of queues.
const (
	tdfName     = "TDF"
	bullName    = "BullMQ"
	asynqName   = "asynq"
	celeryName  = "Celery"
	faktoryName = "Faktory"
)

// queues are the contenders that call functions.
func (b *bench) queues(ctx context.Context) (all []group) {
	var peers []*peer
	for _, p := range []struct {
		name string
		find func(context.Context) *peer
	}{{asynqName, b.asynq}, {bullName, b.bullmq}, {celeryName, b.celery}} {
		if b.o.mayWant(p.name) {
			peers = append(peers, p.find(ctx))
		}
	}
	if b.o.wants(handlersTable, openingTable) {
		all = append(all, b.lives(peers))
	}
	if b.o.wants(latencyTable) {
		all = append(all, b.latencies(peers))
	}
	return all
}

// faktory takes no part anywhere yet.
func faktory() *contender {
	return &contender{
		name: faktoryName, absent: "bench/peers has no program for it: its Go modules could not be had from the module proxy",
	}
}

// lives are whole lives of tasks with handlers that do nothing.
func (b *bench) lives(peers []*peer) group {
	ours := &contender{name: tdfName, ours: true, run: b.tdfLife}
	g := group{contenders: []*contender{ours}}
	for _, p := range peers {
		g.contenders = append(g.contenders, p.life(b))
	}
	g.contenders = append(g.contenders, faktory())
	handlers := table{
		name: handlersTable,
		title: fmt.Sprintf("Handlers that do nothing: %d tasks a run, opened, then processed, in one process; TDF: %d x %d slots, to archived",
			b.o.Handlers, b.o.Workers, b.o.WorkerSlots),
		metrics: []metric{rate, processed, redisCPU}, ratios: []metric{rate, processed},
		reference: asynqName, targets: handlerTargets(),
	}
	opening := table{
		name:    openingTable,
		title:   "Opening those tasks: TDF and BullMQ in batches by one caller, asynq by ten callers, Celery by one",
		metrics: []metric{opened}, ratios: []metric{opened}, reference: asynqName, targets: openingTargets(),
	}
	for _, t := range []table{handlers, opening} {
		if b.o.wants(t.name) {
			g.tables = append(g.tables, t)
		}
	}
	return g
}

// latencies are how long tasks wait for idle handlers.
func (b *bench) latencies(peers []*peer) group {
	g := group{contenders: []*contender{{name: tdfName, ours: true, run: b.tdfLatency}}}
	for _, p := range peers {
		g.contenders = append(g.contenders, p.latency(b, p.name))
		if p.name == asynqName {
			g.contenders = append(g.contenders, p.latency(b, asynqName+", check interval 10 ms", "-check-interval", "10ms"))
		}
	}
	g.contenders = append(g.contenders, faktory())
	g.tables = []table{{
		name: latencyTable,
		title: fmt.Sprintf("From just before a task is opened to the start of its handler: %d tasks a run, %d a second, the fleet idle",
			b.o.Latencies, b.o.Rate),
		metrics: []metric{p50, p99}, ratios: []metric{p50, p99}, reference: bullName, targets: latencyTargets(),
	}}
	return g
}

// warm is how many tasks go before those that are measured.
func warm(n int) int { return max(1, n/20) }

// percentiles turns latencies in milliseconds into a reading.
func percentiles(ms []float64) reading {
	sorted := slices.Sorted(slices.Values(ms))
	at := func(part float64) float64 { return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))] }
	return reading{p50.name: at(0.5), p99.name: at(0.99)}
}

// lifeReading turns seconds into a reading.
func lifeReading(n int, opening, processing, redis float64) reading {
	tasks := float64(n)
	return reading{
		rate.name: tasks / (opening + processing), processed.name: tasks / processing, opened.name: tasks / opening,
		redisCPU.name: redis * 1e6 / float64(n+warm(n)),
	}
}

func arg(n int) string { return strconv.Itoa(n) }

// program is the name of the handler.
const program = "noop"

// site is TDF on a Redis of its own, for one run.
type site struct {
	*crew.Site
	m *manager.Manager
}

func (b *bench) atSite(ctx context.Context, do func(s site) error) (err error) {
	on, err := crew.NewSite(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	var settings []string
	for _, setting := range b.o.Settings {
		if strings.HasPrefix(setting, "manager.") {
			settings = append(settings, setting)
		}
	}
	m, err := on.Manager(ctx, "bench", settings...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return do(site{on, m})
}

func (b *bench) fleet(h worker.Handler) crew.Fleet {
	return crew.Fleet{
		Servers: 1, Workers: b.o.Workers, Slots: b.o.WorkerSlots, Handlers: map[string]worker.Handler{program: h},
	}
}

// tdfLife opens all tasks, then processes and archives them: the start of server and worker is in the time, as with peers.
func (b *bench) tdfLife(ctx context.Context) (r reading, err error) {
	n := b.o.Handlers
	err = b.atSite(ctx, func(s site) error {
		if _, _, err := b.life(ctx, s, warm(n)); err != nil {
			return err
		}
		opening, processing, err := b.life(ctx, s, n)
		if err != nil {
			return err
		}
		redis, err := s.Redis.CPU(ctx)
		r = lifeReading(n, opening.Seconds(), processing.Seconds(), redis)
		return err
	})
	return r, err
}

func (b *bench) life(ctx context.Context, s site, n int) (opening, processing time.Duration, err error) {
	began := time.Now()
	if _, err := s.m.OpenAll(ctx, specs(n)); err != nil {
		return 0, 0, err
	}
	opened := time.Now()
	life, daemons, err := s.Start(ctx, b.fleet(func(context.Context, *worker.Job) error { return nil }))
	if err != nil {
		return 0, 0, err
	}
	err = contend.Archive(life, s.m, n, succeeded)
	ended := time.Now()
	return opened.Sub(began), ended.Sub(opened), errors.Join(err, daemons.Stop())
}

func specs(n int) func(yield func(task.Spec) bool) {
	return func(yield func(task.Spec) bool) {
		for i := range n {
			if !yield(task.Spec{Program: program, Input: strconv.Itoa(i)}) {
				return
			}
		}
	}
}

func succeeded(task *manager.Task) error {
	if task.EndState() != statemachine.Succeeded {
		return fmt.Errorf("task %d has %s: %s", task.ID, task.EndState(), task.Last().Error)
	}
	return nil
}

// tdfLatency opens tasks one by one at a steady rate while a fleet waits for them and a manager archives them.
func (b *bench) tdfLatency(ctx context.Context) (r reading, err error) {
	err = b.atSite(ctx, func(s site) error {
		start, all := time.Now(), warm(b.o.Latencies)+b.o.Latencies
		took := make(chan time.Duration, all)
		life, daemons, err := s.Start(ctx, b.fleet(func(_ context.Context, j *worker.Job) error {
			opened, err := strconv.ParseInt(j.Input, 10, 64)
			took <- time.Since(start) - time.Duration(opened)
			return err
		}))
		if err != nil {
			return err
		}
		archived := make(chan error, 1)
		go func() { archived <- contend.Archive(life, s.m, all, succeeded) }()
		err = b.openSteadily(life, s.m, start, all)
		if err == nil {
			err = <-archived
		}
		err = errors.Join(err, daemons.Stop())
		if err != nil {
			return err
		}
		close(took)
		r = percentiles(milliseconds(took)[all-b.o.Latencies:])
		return nil
	})
	return r, err
}

func milliseconds(took <-chan time.Duration) (ms []float64) {
	for d := range took {
		ms = append(ms, d.Seconds()*1000)
	}
	return ms
}

// openSteadily opens tasks that bring the time, from start, just before they were opened.
func (b *bench) openSteadily(ctx context.Context, m *manager.Manager, start time.Time, n int) error {
	steps := time.NewTicker(time.Second / time.Duration(b.o.Rate))
	defer steps.Stop()
	for range n {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-steps.C:
		}
		at := strconv.FormatInt(int64(time.Since(start)), 10)
		if _, err := m.Open(ctx, task.Spec{Program: program, Input: at}); err != nil {
			return err
		}
	}
	return nil
}

// peer is another queue, with a program that measures it.
type peer struct {
	name, absent string
	// share is the part of the tasks it gets: a slow one would take most of the time.
	share float64
	// command takes -tasks, -warm and -rate; dashes is how its flags begin.
	command func(ctx context.Context, socket string) *exec.Cmd
	dashes  string
	// opening are flags for the table of whole lives.
	opening []string
}

// peerReport is what all these programs print, one half of it.
type peerReport struct {
	Enqueue   float64   `json:"enqueue_seconds"`
	Process   float64   `json:"process_seconds"`
	Latencies []float64 `json:"latencies_ms"`
}

// run runs its program on a Redis of its own, with the CPU time of that in seconds.
func (p *peer) run(ctx context.Context, name string, tasks int, flags ...string) (rep peerReport, redis float64, err error) {
	err = withRedis(ctx, func(srv *redisServer) error {
		cmd := p.command(ctx, srv.Socket())
		cmd.Args = append(cmd.Args, p.dashes+"tasks", arg(tasks), p.dashes+"warm", arg(warm(tasks)))
		cmd.Args = append(cmd.Args, flags...)
		if err := contend.Report(name, cmd, &rep); err != nil {
			return err
		}
		redis, err = srv.CPU(ctx)
		return err
	})
	return rep, redis, err
}

// life is the contender in the tables of handlers and of opening.
func (p *peer) life(b *bench) *contender {
	n := max(1, int(float64(b.o.Handlers)*p.share))
	return &contender{name: p.name, absent: p.absent, run: func(ctx context.Context) (reading, error) {
		rep, redis, err := p.run(ctx, p.name, n, p.opening...)
		if err != nil || rep.Enqueue <= 0 || rep.Process <= 0 {
			return nil, fmt.Errorf("%s reports %+v: %w", p.name, rep, err)
		}
		return lifeReading(n, rep.Enqueue, rep.Process, redis), nil
	}}
}

// latency is the contender in the table of latencies.
func (p *peer) latency(b *bench, name string, flags ...string) *contender {
	return &contender{name: name, absent: p.absent, run: func(ctx context.Context) (reading, error) {
		rep, _, err := p.run(ctx, name, b.o.Latencies, append(flags, p.dashes+"rate", arg(b.o.Rate))...)
		if err != nil {
			return nil, err
		}
		if len(rep.Latencies) != b.o.Latencies {
			return nil, fmt.Errorf("%s: %d latencies of %d tasks", name, len(rep.Latencies), b.o.Latencies)
		}
		return percentiles(rep.Latencies), nil
	}}
}

// asynq processes with ten goroutines, and enqueues with as many.
func (b *bench) asynq(ctx context.Context) *peer {
	p := &peer{name: asynqName, share: 1, dashes: "-", opening: []string{"-enqueuers", "10"}}
	cmd := contend.Command(ctx, "go", "list", "-m", "-f", "{{.Version}}", "github.com/hibiken/asynq")
	cmd.Dir = b.o.peers
	version, err := cmd.Output()
	if err != nil {
		p.absent = "go list: " + firstLine(err)
		return p
	}
	binary, err := contend.BuildAsynq(ctx, b.o.peers, b.dir)
	if err != nil {
		_, _ = fmt.Fprintln(b.progress, err)
		p.absent = firstLine(err)
		return p
	}
	b.note(asynqName, string(version))
	p.command = func(ctx context.Context, socket string) *exec.Cmd {
		return contend.Command(ctx, binary, "-network", "unix", "-redis", socket, "-concurrency", "10")
	}
	return p
}

const notInstalled = "not installed: scripts/setup-bench.sh"

func (b *bench) bullmq(ctx context.Context) *peer {
	p := &peer{name: bullName, share: 1, dashes: "--"}
	modules := filepath.Join(b.o.cache, "bullmq", "node_modules")
	if !exists(filepath.Join(modules, "bullmq")) {
		p.absent = notInstalled
		return p
	}
	if p.absent = b.have(ctx, "Node.js", "node", "--version"); p.absent != "" {
		return p
	}
	p.absent = b.have(ctx, bullName, "node", "-p", "require(process.argv[1]).version", filepath.Join(modules, "bullmq", "package.json"))
	p.command = func(ctx context.Context, socket string) *exec.Cmd {
		cmd := contend.Command(ctx, "node", filepath.Join(b.o.peers, "bullmq", "bench.cjs"), "--socket", socket, "--concurrency", "50")
		cmd.Env = append(cmd.Environ(), "NODE_PATH="+modules)
		return cmd
	}
	return p
}

// celery is slow: with a tenth of the tasks it takes about as long as the others.
func (b *bench) celery(ctx context.Context) *peer {
	p := &peer{name: celeryName, share: 0.1, dashes: "--", absent: notInstalled}
	for _, python := range []string{filepath.Join(b.o.cache, "celery", "bin", "python"), "/usr/bin/python3", "python3"} {
		reason := b.have(ctx, p.name, python, "-c", "import celery, redis; print(celery.__version__)")
		if reason != "" {
			continue
		}
		p.absent = ""
		p.command = func(ctx context.Context, socket string) *exec.Cmd {
			script := filepath.Join(b.o.peers, "celery", "bench.py")
			return contend.Command(ctx, python, "-W", "ignore", script, "--socket", socket, "--concurrency", "10")
		}
		break
	}
	return p
}

// have notes the first line that a program says of its version, or returns why there is none.
func (b *bench) have(ctx context.Context, name, program string, args ...string) (absent string) {
	if _, err := exec.LookPath(program); err != nil {
		return notInstalled
	}
	out, err := contend.Command(ctx, program, args...).Output()
	if err != nil {
		return firstLine(err)
	}
	b.note(name, string(out))
	return ""
}

// note keeps the version of a peer.
func (b *bench) note(name, version string) {
	line, _, _ := strings.Cut(strings.TrimSpace(version), "\n")
	b.found = append(b.found, Version{name, line})
}
