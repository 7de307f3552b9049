package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/bench/contend"
	"github.com/tdf-go/tdf/bench/redisd"
)

// bench is one run of this program.
type bench struct {
	o        options
	dir      string // for all that is made meanwhile
	progress io.Writer
	found    []Version // of peers
}

// groups makes what the options want, and finds out which peers are here.
func (b *bench) groups(ctx context.Context) (all []group, err error) {
	if b.o.wants(programsTable) {
		g, err := b.programs(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	if b.o.wants(handlersTable, openingTable, latencyTable) {
		all = append(all, b.queues(ctx)...)
	}
	for i := range all {
		if all[i].contenders = selected(b.o.contenders, all[i].contenders); len(all[i].contenders) == 0 {
			return nil, fmt.Errorf("no contender is left for the table %s", all[i].tables[0].name)
		}
	}
	return all, nil
}

// The names of contenders with targets.
const (
	groupName   = "TDF, containment group"
	defaultName = "TDF, default containment"
)

// programs are the contenders that run external programs.
func (b *bench) programs(ctx context.Context) (group, error) {
	script, err := contend.WriteProgram(b.dir)
	if err != nil {
		return group{}, err
	}
	slots := b.o.Slots
	xargs := b.external(contend.XargsDirectly(slots, script), b.have(ctx, "xargs", "xargs", "--version"))
	parallel := b.external(contend.Parallel(slots, script), b.have(ctx, "GNU parallel", "parallel", "--version"))
	spawn, reason := b.buildSpawn(ctx)
	golang := contend.Plain(slots, script)
	golang.Name = "Go, os/exec"
	g := group{contenders: []*contender{
		xargs, parallel,
		b.external(contend.Spawn(spawn, slots, script), reason),
		b.external(golang, ""),
		b.deployed(groupName, script, "group"),
		b.deployed(defaultName, script, "auto"),
	}}
	g.tables = []table{{
		name: programsTable,
		title: fmt.Sprintf("No-op `sh` programs: %d a run, %d at a time; TDF: opened, claimed, run, reported, settled, handled and archived",
			b.o.Programs, slots),
		metrics: []metric{rate}, ratios: []metric{rate}, reference: xargs.name, targets: programTargets(xargs.name, parallel.name),
	}}
	return g, nil
}

// external makes a contender of one that says how long so many programs take.
func (b *bench) external(c contend.Contender, absent string) *contender {
	return &contender{name: c.Name, absent: absent, run: func(ctx context.Context) (reading, error) {
		took, err := c.Run(ctx, b.o.Programs)
		return reading{rate.name: float64(b.o.Programs) / took.Seconds()}, err
	}}
}

// deployed is TDF with a server and a worker, each a process, and a private Redis.
func (b *bench) deployed(name, script, containment string) *contender {
	c := &contender{name: name, ours: true}
	c.run = func(ctx context.Context) (r reading, err error) {
		err = withRedis(ctx, func(srv *redisServer) error {
			tdf := contend.TDF{
				Bin: b.o.bin, Dir: b.dir, Redis: srv.Socket(), Script: script, Workers: 1, Slots: b.o.Slots,
				Containment: containment, Settings: b.o.Settings,
			}
			r, err = b.external(tdf.Contender(), "").run(ctx)
			return err
		})
		return r, err
	}
	return c
}

// buildSpawn compiles the loop in C, or says why it cannot.
func (b *bench) buildSpawn(ctx context.Context) (binary, absent string) {
	if absent = b.have(ctx, "C compiler", "cc", "--version"); absent != "" {
		return "", absent
	}
	binary = filepath.Join(b.dir, "spawn")
	cmd := contend.Command(ctx, "cc", "-O2", "-o", binary, filepath.Join(b.o.peers, "spawn.c"))
	if out, err := cmd.CombinedOutput(); err != nil {
		_, _ = fmt.Fprintf(b.progress, "cc: %v\n%s", err, out)
		return "", "cc cannot compile spawn.c: " + err.Error()
	}
	return binary, ""
}

// exists reports whether a file is there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// reading is what one run of one contender has measured, by the name of the metric.
type reading map[string]float64

// contender is one system, in one configuration.
type contender struct {
	name string
	// ours says that this is TDF: without it there is nothing to compare.
	ours bool
	// absent says why it cannot take part here.
	absent string
	run    func(ctx context.Context) (reading, error)
}

// group are contenders that are measured in turns, and the tables that show what came out.
type group struct {
	contenders []*contender
	tables     []table
}

// selected leaves those whose names begin with one of the words, or all if there are none.
func selected(words []string, all []*contender) []*contender {
	if len(words) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(c *contender) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(c.name, word) })
	})
}

// missing is an error if a word names no contender of any group.
func missing(words []string, groups []group) error {
	for _, word := range words {
		if !slices.ContainsFunc(groups, func(g group) bool { return len(selected([]string{word}, slices.Clone(g.contenders))) > 0 }) {
			return fmt.Errorf("-contenders=%s: no contender of these tables has a name that begins with %q", strings.Join(words, ","), word)
		}
	}
	return nil
}

// rounds runs every contender once a round, one after the other: a machine that is busy for a while slows them alike.
// Each round begins with another one. A peer that fails is absent from then on; if TDF fails, that is an error.
func (b *bench) rounds(ctx context.Context, all []*contender) (map[string][]reading, error) {
	samples := map[string][]reading{}
	for round := range b.o.Rounds {
		for i := range all {
			c := all[(i+round)%len(all)]
			if c.absent != "" {
				continue
			}
			r, err := b.once(ctx, c)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil && c.ours {
				return nil, err
			}
			if err != nil {
				c.absent = "failed: " + firstLine(err)
				_, _ = fmt.Fprintf(b.progress, "%s: %v\n", c.name, err)
				continue
			}
			samples[c.name] = append(samples[c.name], r)
			_, _ = fmt.Fprintf(b.progress, "round %d: %s: %s\n", round+1, c.name, r)
		}
	}
	return samples, nil
}

func (b *bench) once(ctx context.Context, c *contender) (reading, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.o.runLimit, fmt.Errorf("-run-limit=%s is over", b.o.runLimit))
	defer cancel()
	r, err := c.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return r, err
}

// String is a line of progress.
func (r reading) String() string {
	var words []string
	for _, m := range allMetrics() {
		if v, ok := r[m.name]; ok {
			words = append(words, m.format(v)+" "+m.title)
		}
	}
	return strings.Join(words, ", ")
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

type redisServer = redisd.Server

// withRedis gives one run a redis-server of its own, which ends with it.
func withRedis(ctx context.Context, do func(srv *redisServer) error) error {
	srv, err := redisd.Start(ctx)
	if err != nil {
		return err
	}
	defer srv.Stop()
	return do(srv)
}

// Machine is what it was measured on.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	MemoryGiB int    `json:"memory_gib"`
	Kernel    string `json:"kernel"`
	System    string `json:"system"`
	// Load is the first number of /proc/loadavg: how many wanted a processor in the last minute.
	Load string `json:"load"`
}

// String is one line, without the load.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %d GiB, %s, %s", m.Processor, m.Cores, m.MemoryGiB, m.System, m.Kernel)
}

// busy reports whether all cores had enough to do already when it began.
func (m Machine) busy() bool {
	load, err := strconv.ParseFloat(m.Load, 64)
	return err == nil && load > float64(m.Cores)
}

func thisMachine() Machine {
	load, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	kib, _ := strconv.Atoi(strings.TrimSuffix(value("/proc/meminfo", "MemTotal", ":"), " kB")) // 0 if unknown
	kernel := "unknown kernel"
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	}
	return Machine{
		Processor: value("/proc/cpuinfo", "model name", ":"), Cores: runtime.NumCPU(), MemoryGiB: (kib + 1<<19) >> 20,
		Kernel: kernel, System: strings.Trim(value("/etc/os-release", "PRETTY_NAME", "="), `"`), Load: load,
	}
}

func read(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	return string(text)
}

// value is what stands behind a name in a file of such lines.
func value(file, name, separator string) string {
	for line := range strings.SplitSeq(read(file), "\n") {
		if key, text, found := strings.Cut(line, separator); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(text)
		}
	}
	return "unknown " + name
}

// versions are those of TDF, of what all need, and of the peers that are here.
func (b *bench) versions(ctx context.Context) []Version {
	tdf := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		tdf = info.Main.Version
	}
	redis, err := contend.Command(ctx, "redis-server", "--version").Output()
	if err != nil {
		redis = []byte(firstLine(err))
	}
	all := []Version{{"TDF", tdf}, {"Go", runtime.Version()}, {"redis-server", strings.TrimSpace(string(redis))}}
	return append(all, b.found...)
}
