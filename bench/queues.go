package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// The names of contenders in the tables of queues.
const (
	tdfName    = "TDF"
	bullName   = "BullMQ"
	asynqName  = "asynq"
	celeryName = "Celery"
)

// queuePeers are the peers that call functions.
func (b *bench) queuePeers(ctx context.Context) (all []*peer) {
	if b.mayWant(asynqName) {
		all = append(all, b.asynq(ctx, "--concurrency", "10", "--enqueuers", "10"))
	}
	if b.mayWant(bullName) {
		all = append(all, b.bullmq(ctx))
	}
	if b.mayWant(celeryName) {
		all = append(all, b.celery(ctx))
	}
	return all
}

// handlers are whole lives of tasks with handlers that do nothing, and the first half of them.
func (b *bench) handlers(ctx context.Context) ([]Table, error) {
	all := []*contender{{name: tdfName, run: b.tdfLife(handled)}, {name: atOnceName, run: b.tdfLife(atOnce)}}
	for _, p := range b.queuePeers(ctx) {
		all = append(all, p.life(b))
	}
	return b.compare(ctx, all, comparison{
		Table: Table{
			Name: "handlers",
			Title: fmt.Sprintf("Handlers that do nothing: %d tasks a run, opened, then processed, in one process; "+
				"TDF: %d x %d slots, to archived by a manager that handles them, or at once",
				b.Tasks, b.Workers, b.Slots),
			Metrics: []Metric{rate, processed, redisCPU}, Reference: asynqName,
		},
		ratios:  []Metric{rate, processed},
		targets: []target{{tdfName, asynqName, rate, 1.5, 2.5}, {tdfName, bullName, rate, 0.8, 1.2}},
	}, comparison{
		Table: Table{
			Name: "opening", Title: "Opening those tasks: TDF and BullMQ in batches by one caller, asynq by ten callers, Celery by one",
			Metrics: []Metric{opened}, Reference: asynqName,
		},
		ratios:  []Metric{opened},
		targets: []target{{tdfName, asynqName, opened, 1.5, 2.5}},
	})
}

func latencyTargets() []target {
	return []target{{tdfName, bullName, p50, 1.2, 1}, {tdfName, bullName, p99, 1.2, 1}}
}

// latency is how long tasks wait for idle handlers.
func (b *bench) latency(ctx context.Context) ([]Table, error) {
	all := []*contender{{name: tdfName, run: b.tdfLatency}}
	for _, p := range b.queuePeers(ctx) {
		all = append(all, p.latency(b, p.name))
		if p.name == asynqName {
			all = append(all, p.latency(b, asynqName+", check interval 10 ms", "--check-interval", "10ms"))
		}
	}
	return b.compare(ctx, all, comparison{
		Table: Table{
			Name: "latency",
			Title: fmt.Sprintf("From just before a task is opened to the start of its handler: %d tasks a run, %d a second, the fleet idle",
				b.Tasks, b.Rate),
			Metrics: []Metric{p50, p99}, Reference: bullName,
		},
		ratios: []Metric{p50, p99}, targets: latencyTargets(),
	})
}

// warmUp is how many tasks are run, unmeasured, before n that are measured.
func warmUp(n int) int { return max(1, n/20) }

// percentiles turns latencies in milliseconds into a reading.
func percentiles(ms []float64) reading {
	sorted := slices.Sorted(slices.Values(ms))
	at := func(part float64) float64 { return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))] }
	return reading{p50.Name: at(0.5), p99.Name: at(0.99)}
}

// lifeReading turns seconds into a reading.
func lifeReading(n int, opening, processing, redis float64) reading {
	tasks := float64(n)
	return reading{
		rate.Name: tasks / (opening + processing), processed.Name: tasks / processing, opened.Name: tasks / opening,
		redisCPU.Name: redis * 1e6 / float64(n+warmUp(n)),
	}
}

// jobs are whole lives of tasks as submit opens them, in a job, beside those of no job.
func (b *bench) jobs(ctx context.Context) ([]Table, error) {
	const none = "no job"
	all := []*contender{{name: none, run: b.tdfLife(atOnce)}, {name: "a job", run: b.tdfLife(ofAJob)}}
	return b.compare(ctx, all, comparison{
		Table: Table{
			Name:    "jobs",
			Title:   fmt.Sprintf("Tasks with handlers that do nothing, archived at once: %d a run, %d x %d slots", b.Tasks, b.Workers, b.Slots),
			Metrics: []Metric{opened, processed, redisCPU}, Reference: none,
		},
		ratios: []Metric{opened, processed, redisCPU},
	})
}

// noop is the name of the handler.
const noop = "noop"

// atSite calls do with TDF on a Redis of its own, for one run.
func (b *bench) atSite(ctx context.Context, do func(s *site.Site, m *manager.Manager) error) error {
	settings := slices.DeleteFunc(slices.Clone(b.settings), func(s string) bool { return !strings.HasPrefix(s, "manager.") })
	return site.With(ctx, func(s *site.Site) error {
		m, err := s.Manager(ctx, "bench", settings...)
		if err != nil {
			return err
		}
		return do(s, m)
	})
}

// start adds a server and the workers with that handler.
func (b *bench) start(c *site.Crew, h worker.Handler) error {
	hand := site.Hand{Slots: b.Slots, Handlers: map[string]worker.Handler{noop: h}}
	return errors.Join(c.Servers(1), c.Workers(b.Workers, hand))
}

// byItself ends the names of contenders whose tasks are archived by what ends them.
const (
	byItself   = ", archived at once"
	atOnceName = tdfName + byItself
)

// archiving is how tasks get from their end to the archive.
type archiving struct {
	archive string
	await   func(ctx context.Context, m *manager.Manager, n int) error
	opening []manager.SubmitOption
}

var (
	handled = archiving{task.ArchiveByManager, func(ctx context.Context, m *manager.Manager, n int) error {
		return site.Archive(ctx, m, n, succeeded)
	}, nil}
	atOnce = archiving{task.ArchiveAtOnce, func(ctx context.Context, m *manager.Manager, _ int) error {
		return site.AwaitArchived(ctx, m)
	}, nil}
	ofAJob = archiving{task.ArchiveAtOnce, atOnce.await, []manager.SubmitOption{manager.AsJob(task.PlanSpec{Name: noop}, nil)}}
)

// tdfLife opens all tasks, then processes and archives them: the start of server and worker is in the time, as with peers.
func (b *bench) tdfLife(a archiving) func(context.Context) (reading, error) {
	return func(ctx context.Context) (r reading, err error) {
		err = b.atSite(ctx, func(s *site.Site, m *manager.Manager) error {
			r, err = b.lives(ctx, s, m, a, func(c *site.Crew) error {
				return b.start(c, func(context.Context, *worker.Job) error { return nil })
			})
			return err
		})
		return r, err
	}
}

// lives are those of all tasks, after a warm-up, done by a crew that start adds to.
func (b *bench) lives(
	ctx context.Context, s *site.Site, m *manager.Manager, a archiving, start func(*site.Crew) error,
) (r reading, err error) {
	var opening, processing time.Duration
	for _, n := range []int{warmUp(b.Tasks), b.Tasks} {
		began := time.Now()
		if _, err := m.SubmitAll(ctx, numbered(task.Spec{Program: noop, Archive: a.archive}, n), a.opening...); err != nil {
			return nil, err
		}
		opening = time.Since(began)
		err = s.Run(ctx, func(ctx context.Context, c *site.Crew) error {
			if err := start(c); err != nil {
				return err
			}
			err := a.await(ctx, m, n)
			processing = time.Since(began) - opening
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	used, err := s.Redis.Usage(ctx)
	return lifeReading(b.Tasks, opening.Seconds(), processing.Seconds(), used.Redis), err
}

// numbered are n tasks like spec, whose inputs are their numbers from 0.
func numbered(spec task.Spec, n int) iter.Seq[task.Spec] {
	return func(yield func(task.Spec) bool) {
		for i := range n {
			if spec.Input = strconv.Itoa(i); !yield(spec) {
				return
			}
		}
	}
}

func succeeded(task *task.Task) error {
	if task.EndState() != statemachine.Succeeded {
		return fmt.Errorf("task %d has %s: %s", task.ID, task.EndState(), task.Failure())
	}
	return nil
}

// tdfLatency opens tasks one by one at a steady rate while a fleet waits for them and a manager archives them.
func (b *bench) tdfLatency(ctx context.Context) (r reading, err error) {
	start, all := time.Now(), warmUp(b.Tasks)+b.Tasks
	took := make(chan time.Duration, all)
	err = b.atSite(ctx, func(s *site.Site, m *manager.Manager) error {
		return s.Run(ctx, func(ctx context.Context, c *site.Crew) error {
			err := b.start(c, func(_ context.Context, j *worker.Job) error {
				opened, err := strconv.ParseInt(j.Task.Input, 10, 64)
				took <- time.Since(start) - time.Duration(opened)
				return err
			})
			if err != nil {
				return err
			}
			archived := make(chan error, 1)
			go func() { archived <- site.Archive(ctx, m, all, succeeded) }()
			if err := b.openSteadily(ctx, m, start, all); err != nil {
				return err
			}
			return <-archived
		})
	})
	if err != nil {
		return nil, err
	}
	close(took)
	var ms []float64
	for d := range took {
		ms = append(ms, d.Seconds()*1000)
	}
	return percentiles(ms[all-b.Tasks:]), nil
}

// openSteadily opens tasks that bring the time, from start, just before they were opened.
func (b *bench) openSteadily(ctx context.Context, m *manager.Manager, start time.Time, n int) error {
	steps := time.NewTicker(time.Second / time.Duration(b.Rate))
	defer steps.Stop()
	for range n {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-steps.C:
		}
		at := strconv.FormatInt(int64(time.Since(start)), 10)
		if _, err := m.Submit(ctx, task.Spec{Program: noop, Input: at}); err != nil {
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
	// command takes --tasks, --warm and --rate.
	command func(ctx context.Context, socket string) *exec.Cmd
}

// peerReport is what all these programs print, one half of it.
type peerReport struct {
	Enqueue   float64   `json:"enqueue_seconds"`
	Process   float64   `json:"process_seconds"`
	Latencies []float64 `json:"latencies_ms"`
}

// run runs its program on a Redis of its own, and returns the CPU time of that in seconds.
func (p *peer) run(ctx context.Context, name string, tasks, warm int, flags ...string) (rep peerReport, redis float64, err error) {
	err = withRedis(ctx, func(srv *site.Redis) error {
		cmd := p.command(ctx, srv.Socket())
		cmd.Args = append(cmd.Args, "--tasks", strconv.Itoa(tasks), "--warm", strconv.Itoa(warm))
		cmd.Args = append(cmd.Args, flags...)
		if err := report(name, cmd, &rep); err != nil {
			return err
		}
		used, err := srv.Usage(ctx)
		redis = used.Redis
		return err
	})
	return rep, redis, err
}

// life is the contender in the tables of handlers and of opening.
func (p *peer) life(b *bench) *contender {
	n := max(1, int(float64(b.Tasks)*p.share))
	return &contender{name: p.name, peer: true, absent: p.absent, run: func(ctx context.Context) (reading, error) {
		rep, redis, err := p.run(ctx, p.name, n, warmUp(n))
		if err != nil || rep.Enqueue <= 0 || rep.Process <= 0 {
			return nil, fmt.Errorf("%s reports %+v: %w", p.name, rep, err)
		}
		return lifeReading(n, rep.Enqueue, rep.Process, redis), nil
	}}
}

// latency is the contender in the table of latencies.
func (p *peer) latency(b *bench, name string, flags ...string) *contender {
	return &contender{name: name, peer: true, absent: p.absent, run: func(ctx context.Context) (reading, error) {
		rep, _, err := p.run(ctx, name, b.Tasks, warmUp(b.Tasks), append(flags, "--rate", strconv.Itoa(b.Rate))...)
		if err != nil {
			return nil, err
		}
		if len(rep.Latencies) != b.Tasks {
			return nil, fmt.Errorf("%s: %d latencies of %d tasks", name, len(rep.Latencies), b.Tasks)
		}
		return percentiles(rep.Latencies), nil
	}}
}

// asynq is started with further flags.
func (b *bench) asynq(ctx context.Context, flags ...string) *peer {
	p := &peer{name: asynqName, share: 1}
	cmd := command(ctx, "go", "list", "-m", "-f", "{{.Version}}", "github.com/hibiken/asynq")
	cmd.Dir = b.peers
	version, err := cmd.Output()
	if err != nil {
		p.absent = "go list: " + firstLine(err)
		return p
	}
	binary := filepath.Join(b.dir, "asynq")
	build := command(ctx, "go", "build", "-o", binary, "./asynq")
	build.Dir = b.peers
	if out, err := build.CombinedOutput(); err != nil {
		b.say("building %s/asynq: %v\n%s", b.peers, err, out)
		p.absent = "go build: " + firstLine(err)
		return p
	}
	b.note(asynqName, string(version))
	p.command = func(ctx context.Context, socket string) *exec.Cmd {
		return command(ctx, binary, append([]string{"--redis", socket}, flags...)...)
	}
	return p
}

const notInstalled = "not installed: scripts/setup-bench.sh"

func (b *bench) bullmq(ctx context.Context) *peer {
	p := &peer{name: bullName, share: 1}
	modules := filepath.Join(b.cache, "bullmq", "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "bullmq")); err != nil {
		p.absent = notInstalled
		return p
	}
	if p.absent = b.have(ctx, "Node.js", "node", "--version"); p.absent != "" {
		return p
	}
	p.absent = b.have(ctx, bullName, "node", "-p", "require(process.argv[1]).version", filepath.Join(modules, "bullmq", "package.json"))
	p.command = func(ctx context.Context, socket string) *exec.Cmd {
		cmd := command(ctx, "node", filepath.Join(b.peers, "bullmq", "bench.cjs"), "--socket", socket, "--concurrency", "50")
		cmd.Env = append(cmd.Environ(), "NODE_PATH="+modules)
		return cmd
	}
	return p
}

// celery is slow: with a tenth of the tasks it takes about as long as the others.
func (b *bench) celery(ctx context.Context) *peer {
	p := &peer{name: celeryName, share: 0.1, absent: notInstalled}
	for _, python := range []string{filepath.Join(b.cache, "celery", "bin", "python"), "/usr/bin/python3", "python3"} {
		reason := b.have(ctx, p.name, python, "-c", "import celery, redis; print(celery.__version__)")
		if reason != "" {
			continue
		}
		p.absent = ""
		p.command = func(ctx context.Context, socket string) *exec.Cmd {
			script := filepath.Join(b.peers, "celery", "bench.py")
			return command(ctx, python, "-W", "ignore", script, "--socket", socket, "--concurrency", "10")
		}
		break
	}
	return p
}

// have records the first line that a program prints as its version. If that fails, absent is the reason.
func (b *bench) have(ctx context.Context, name, program string, args ...string) (absent string) {
	if _, err := exec.LookPath(program); err != nil {
		return notInstalled
	}
	out, err := command(ctx, program, args...).Output()
	if err != nil {
		return firstLine(err)
	}
	b.note(name, string(out))
	return ""
}

// note keeps the version of a peer.
func (b *bench) note(name, version string) {
	line, _, _ := strings.Cut(strings.TrimSpace(version), "\n")
	if found := (Version{name, line}); !slices.Contains(b.results.Versions, found) {
		b.results.Versions = append(b.results.Versions, found)
	}
}
