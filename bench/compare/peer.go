package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tdf-go/tdf/bench/contend"
)

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
