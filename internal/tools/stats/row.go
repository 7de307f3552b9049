package main

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
)

const (
	functionLimit = 60  // lines
	fileLimit     = 250 // lines
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
