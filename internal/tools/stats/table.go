package main

import (
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

var header = []string{
	"", "code lines", "test/code", "file med/p90/max", "func med/p90/p99/max", "func >60", "comments", "documented",
}

// peers are other projects measured the same way, without their tests, generated
// files and test support. They move: the figures are of autumn 2026.
var peers = [][]string{
	{"raft core", "4557", "2.55", "155/557/2162", "8/30/98/395", "2.3%", "38%", "67%"},
	{"river core", "17607", "2.09", "117/693/3025", "9/40/120/314", "4.8%", "25%", "41%"},
	{"asynq", "11854", "1.87", "185/744/2115", "8/27/90/177", "2.1%", "17%", "71%"},
	{"alertmanager", "23124", "1.56", "143/380/1503", "10/45/113/391", "5.9%", "18%", "80%"},
	{"redka", "9205", "2.08", "44/189/510", "9/22/42/220", "0.3%", "17%", "69%"},
	{"wtf", "4078", "0.42", "90/375/673", "11/45/79/95", "4.3%", "21%", "80%"},
	{"nsq", "11572", "0.72", "73/398/1059", "10/48/105/176", "5.7%", "4%", "15%"},
	{"litestream", "22918", "1.91", "190/915/3408", "15/59/144/289", "9.8%", "11%", "70%"},
	{"rqlite", "25378", "2.22", "126/394/3263", "9/38/124/327", "4.9%", "14%", "97%"},
	{"faktory", "7354", "0.53", "120/316/703", "9/34/83/137", "2.5%", "19%", "21%"},
	{"oklog/run", "92", "2.38", "96/96/96", "4/19/29/29", "0%", "33%", "100%"},
}

// printTable writes one row a package, their sum, and the peers.
func printTable(w io.Writer, files []*file) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cells []string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }
	line(header)
	for _, dir := range packages(files) {
		line(rowOf(dir, files, func(f *file) bool { return path.Dir(f.path) == dir }).cells())
	}
	line(make([]string, len(header)))
	line(rowOf("TDF", files, func(*file) bool { return true }).cells())
	for _, peer := range peers {
		line(peer)
	}
	_ = t.Flush()
}

// printFindings lists what is over a limit, and undocumented names, one a line.
func printFindings(w io.Writer, files []*file) {
	for _, f := range files {
		if f.test || f.tool {
			continue
		}
		if f.lines > fileLimit {
			fmt.Fprintf(w, "%s: %d lines\n", f.path, f.lines)
		}
		for _, fn := range f.functions {
			if fn.lines > functionLimit {
				fmt.Fprintf(w, "%s: %s: %d lines\n", f.path, fn.name, fn.lines)
			}
		}
		for _, name := range f.bare {
			fmt.Fprintf(w, "%s: %s: no doc comment\n", f.path, name)
		}
	}
}

const (
	functionLimit = 60  // lines
	fileLimit     = 500 // lines
)

// row is one line of the table.
type row struct {
	name                         string
	code, test, comments         int
	fileLines, funcLines         []int
	long, exported, undocumented int
}

// rowOf adds up the files of the product that keep chooses, and their tests.
func rowOf(name string, files []*file, keep func(*file) bool) *row {
	r := &row{name: name}
	for _, f := range files {
		switch {
		case !keep(f) || f.tool:
		case f.test:
			r.test += f.code
		default:
			r.add(f)
		}
	}
	slices.Sort(r.fileLines)
	slices.Sort(r.funcLines)
	return r
}

func (r *row) add(f *file) {
	r.code += f.code
	r.comments += f.comments
	r.fileLines = append(r.fileLines, f.lines)
	r.exported += f.exported
	r.undocumented += len(f.bare)
	for _, fn := range f.functions {
		r.funcLines = append(r.funcLines, fn.lines)
		if fn.lines > functionLimit {
			r.long++
		}
	}
}

// cells are the columns of the table, in the order of its header.
func (r *row) cells() []string {
	return []string{
		r.name,
		strconv.Itoa(r.code),
		ratio(r.test, r.code),
		fmt.Sprintf("%d/%d/%d", quantile(r.fileLines, 0.5), quantile(r.fileLines, 0.9), quantile(r.fileLines, 1)),
		fmt.Sprintf("%d/%d/%d/%d", quantile(r.funcLines, 0.5), quantile(r.funcLines, 0.9),
			quantile(r.funcLines, 0.99), quantile(r.funcLines, 1)),
		percent(r.long, len(r.funcLines)),
		percent(r.comments, r.comments+r.code),
		percent(r.exported-r.undocumented, r.exported),
	}
}

// quantile returns the nearest-rank quantile of sorted values, 0 of none.
func quantile(sorted []int, q float64) int {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func ratio(a, b int) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// packages lists the directories of the product, in order.
func packages(files []*file) []string {
	var dirs []string
	for _, f := range files {
		if !f.tool && !f.test {
			dirs = append(dirs, path.Dir(f.path))
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
