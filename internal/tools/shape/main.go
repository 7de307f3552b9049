// Command shape measures how simple the house is, and fails if it has become less so.
//
//	shape [-api] [-unused] [DIRECTORY]
//
// Each row has a limit, which is what was measured last: a change that improves a row lowers its limit, and one that exceeds it
// says in its commit why it raises it. Those of the path leave room for a loop that comes round while a task passes.
//
// Build it with -cover -covermode=atomic -coverpkg=./..., which is how it sees what a task passes.
//
// What the public packages export are their constants, variables, functions and types, and the exported methods and fields of those
// types; docs/api.txt lists it.
package main

//go:generate go run . -api ../../..

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// rows are the measures, with their limits. Tests are counted nowhere. There is room for the store of programs, for directories of
// rounds, uploads with their benchmark, variables of tasks, and results; for files that rounds return, whole outputs, errands to
// workers, and retries that go elsewhere; for jobs, the input and the limits of a task, and files that are returned to a directory
// or by rsync; for tasks that take several slots, attributes that change, versions that only other workers keep or that the first
// worker pins, and output beyond the record elsewhere than in Redis, with jobs that know of what is lost; for health, metrics and
// the site over HTTP, with its tokens, which also take four methods of the store, with outputs, plans, programs, blobs, waits, and
// changes of queues, nodes and workers; for series, with the records they stand on, which take two methods of the store; for the
// gateway of workers over HTTP, and what it tells them of a task; for parameters, which change by a method of the store; for the
// interfaces of Flock and Disbatch, with what they need of series and rounds. A task
// passes what notes when its version was used last, what reads the node to avoid and the number of its job, and what looks whether
// it has an input, limits of its own, several slots, attributes to tell, a time when it wants to run again, a status of its own, and
// anything that was cut. Jobs use much of what plans and submissions have, from files of their own.
func rows() []row {
	return []row{
		{"Go lines", 100000, (*house).lines},
		{"Go lines of the product", 86300, (*house).productLines},
		{"Go files", 478, (*house).files},
		{"folders directly below internal", 6, (*house).rooms},
		{"structs that are a task", 5, (*house).tasks},
		{"files that spell one attribute of a task", 3, (*house).spellings},
		{"exported methods of the store's largest type", 47, (*house).methods},
		{"packages of others that manager is compiled with", 20, func(h *house) int { return h.foreign }},
		{"exported identifiers of the public packages", 1812, func(h *house) int { return len(h.api) }},
		{"those of them that nothing else uses", 0, func(h *house) int { return len(h.idle) }},
		{"map literals as JSON in cmd", 0, (*house).literals},
		{"calls within a package that leave their file, in percent", 43, (*house).leaving},
		{"functions that one task passes", 320, func(h *house) int { return h.path.functions() }},
		{"their files", 68, func(h *house) int { return h.path.files() }},
		{"their packages", 16, func(h *house) int { return h.path.packages() }},
		{"functions that open a task", 85, func(h *house) int { return h.path.opening() }},
		{"their calls", 115, func(h *house) int { return h.path.calls() }},
	}
}

// row is one measure: what it counts, and the most it may be.
type row struct {
	name    string
	most    int
	measure func(*house) int
}

var errWorse = errors.New("the house is less simple than its limits say: mend it, or raise the limit in internal/tools/shape and say why")

func main() {
	api := flag.Bool("api", false, "write what the public packages export to docs/api.txt")
	unused := flag.Bool("unused", false, "list what of that nothing else uses")
	flag.Parse()
	if err := run(cmp.Or(flag.Arg(0), "."), *api, *unused); err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

func run(root string, api, unused bool) error {
	h, err := enter(root)
	if err != nil {
		return err
	}
	if api {
		return h.write()
	}
	if err := h.unused(); err != nil {
		return err
	}
	if unused {
		fmt.Println(strings.Join(h.idle, "\n"))
		return nil
	}
	if h.path, err = walk(context.Background(), h); err != nil {
		return err
	}
	return show(os.Stdout, h, rows())
}

// show writes the table. The error is errWorse if a row exceeds its limit.
func show(w io.Writer, h *house, rows []row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "now\tlimit\t\t")
	worse := false
	for _, r := range rows {
		value, mark := r.measure(h), ""
		if value > r.most {
			worse, mark = true, "  <- worse"
		}
		fmt.Fprintf(table, "%d\t%d\t\t  %s%s\n", value, r.most, r.name, mark)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if worse {
		return errWorse
	}
	return nil
}
