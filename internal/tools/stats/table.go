package main

import (
	"fmt"
	"io"
	"path"
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
