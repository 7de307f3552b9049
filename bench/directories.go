package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tdf-go/tdf/internal/sandbox/remove"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
)

// directory is where a program runs, and what happens there.
type directory string

const (
	left     directory = "its copy, left alone" // the directory of most rounds, so that of the other tables
	added    directory = "its copy, a file added"
	changed  directory = "its copy, run.sh changed"
	overlaid directory = "an overlay, a file added"
	inPlace  directory = "the program's directory" // what rounds once had, together
	littered directory = "the program's directory, a file added and removed"
)

// directories measures what it costs that each round has a directory of its own.
func (b *bench) directories(ctx context.Context) ([]Table, error) {
	script, err := writeProgram(b.dir)
	if err != nil {
		return nil, err
	}
	container, err := openContainer(shim.PIDNamespace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = container.Close() }()
	var all []*contender
	for _, kind := range []directory{inPlace, left, littered, added, changed, overlaid} {
		if kind == overlaid && !container.Views() {
			all = append(all, &contender{name: string(kind), absent: "none can be mounted here"})
			continue
		}
		all = append(all, b.timed(string(kind), (&slots{container: container, script: script, temp: b.dir, n: b.Slots, kind: kind}).run))
	}
	return b.compare(ctx, all, comparison{
		Table: Table{
			Name: "directories", Title: fmt.Sprintf("Directories of rounds, without Redis: %d tasks, %d at a time", b.Tasks, b.Slots),
			Metrics: []Metric{rate, cpuMillis}, Reference: string(inPlace),
		},
		ratios: []Metric{rate, cpuMillis},
	})
}

// makeDirectory does what a worker does before a round.
func (c *slots) makeDirectory(p *place) (shim.Program, error) {
	switch {
	case c.kind == inPlace, c.kind == littered:
		return shim.Program{Dir: filepath.Dir(c.script)}, nil
	case p.dir.Clean():
		return shim.Program{Dir: p.dir.Path()}, nil
	}
	private, err := os.MkdirTemp(c.temp, "round.*")
	if err != nil {
		return shim.Program{}, err
	}
	program := shim.Program{Dir: private}
	if c.kind == overlaid {
		program.View = shim.View{Lower: filepath.Dir(c.script), Work: private + ".overlay"}
		return program, os.Mkdir(program.View.Work, 0o700)
	}
	return program, errors.Join(c.tree.Fill(private), p.dir.Hold(private, c.tree))
}

// endDirectory does what a program may do, and then what a worker does after a round.
func (c *slots) endDirectory(p *place, private string) (err error) {
	file := filepath.Join(private, fmt.Sprintf("out.%d.dat", p.index))
	switch c.kind {
	case inPlace:
		return nil
	case littered:
		return errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Remove(file))
	case left:
	case changed:
		err = os.WriteFile(filepath.Join(private, "run.sh"), nil, 0o700)
	case added, overlaid:
		err = os.WriteFile(file, []byte("x"), 0o600)
	}
	if !p.dir.Restore(p.dir.Untouched(), remove.In) {
		p.dir.Forget()
		err = errors.Join(err, remove.Tree(private), remove.Tree(private+".overlay"))
	}
	return err
}
