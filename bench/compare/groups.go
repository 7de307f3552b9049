package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tdf-go/tdf/bench/contend"
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
