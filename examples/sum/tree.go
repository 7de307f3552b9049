package main

import (
	"fmt"
	"strconv"
)

// tree says which task adds up what: the first ones, on level 0, up to bucket
// of the numbers each, those on a level above up to bucket sums of the level
// below, until there is one. It follows from the arguments alone, so every
// manager at any time has the same one.
type tree struct {
	from, to int64
	bucket   int64
}

// place is where in the tree a task is.
type place struct{ level, index int64 }

// width is how many tasks a level has.
func (t tree) width(level int64) int64 {
	n := t.to - t.from + 1
	for range level + 1 {
		n = (n + t.bucket - 1) / t.bucket
	}
	return n
}

// top is the level with one task.
func (t tree) top() int64 {
	level := int64(0)
	for t.width(level) > 1 {
		level++
	}
	return level
}

func (t tree) parent(p place) place { return place{p.level + 1, p.index / t.bucket} }

// children are the places whose sums a task above level 0 adds up.
func (t tree) children(p place) []place {
	first, end := p.index*t.bucket, min((p.index+1)*t.bucket, t.width(p.level-1))
	children := make([]place, 0, end-first)
	for i := first; i < end; i++ {
		children = append(children, place{p.level - 1, i})
	}
	return children
}

// numbers are what a task of level 0 adds up.
func (t tree) numbers(index int64) []string {
	var numbers []string
	for n := t.from + index*t.bucket; n <= min(t.to, t.from+(index+1)*t.bucket-1); n++ {
		numbers = append(numbers, strconv.FormatInt(n, 10))
	}
	return numbers
}

// key is the key under which the task of a place is opened.
func (t tree) key(p place) string {
	return fmt.Sprintf("sum %d %d %d: %d %d", t.from, t.to, t.bucket, p.level, p.index)
}

// placeOf is the place that a key is about, if it is one of this tree.
func (t tree) placeOf(key string) (p place, ok bool) {
	var k tree
	n, err := fmt.Sscanf(key, "sum %d %d %d: %d %d", &k.from, &k.to, &k.bucket, &p.level, &p.index)
	return p, err == nil && n == 5 && k == t
}
