package main

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"

	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/statemachine"
)

// newestTasks are the tasks that were archived last, of those that came along; of a task the newest revision. It holds no more
// than so many.
type newestTasks struct {
	most int
	list newestHeap
	has  map[archive.Key]*newestTask
}

// newestTask is one of them. at is its place in the heap.
type newestTask struct {
	head archive.Head
	when statemachine.Time
	// line is the record as it was found: only those that are left in the end are read.
	line []byte
	at   int
}

// wants reports whether a record has to be looked at.
func (n *newestTasks) wants(h *archive.Head) bool {
	if old := n.has[h.Key()]; old != nil {
		return h.Rev > old.head.Rev
	}
	return len(n.list) < n.most || older(n.list[0], &newestTask{head: *h, when: h.ArchivedAt()})
}

// add takes a record that is wanted.
func (n *newestTasks) add(h *archive.Head, line []byte) {
	if n.has == nil {
		n.has = map[archive.Key]*newestTask{}
	}
	one := &newestTask{head: *h, when: h.ArchivedAt(), line: bytes.Clone(line)}
	if old := n.has[h.Key()]; old != nil {
		one.at = old.at
		*old = *one
		heap.Fix(&n.list, old.at)
		return
	}
	n.has[h.Key()] = one
	heap.Push(&n.list, one)
	if len(n.list) > n.most {
		if last, is := heap.Pop(&n.list).(*newestTask); is {
			delete(n.has, last.head.Key())
		}
	}
}

// lines are the records, that one first that was archived last.
func (n *newestTasks) lines() [][]byte {
	slices.SortFunc(n.list, func(a, b *newestTask) int {
		return cmp.Or(cmp.Compare(b.when, a.when), cmp.Compare(b.head.ID, a.head.ID))
	})
	lines := make([][]byte, len(n.list))
	for i, one := range n.list {
		lines[i] = one.line
	}
	return lines
}

// older orders tasks by when they were archived.
func older(a, b *newestTask) bool {
	return cmp.Or(cmp.Compare(a.when, b.when), cmp.Compare(a.head.ID, b.head.ID)) < 0
}

// newestHeap has the oldest of them in front.
type newestHeap []*newestTask

// Len implements heap.Interface.
func (h *newestHeap) Len() int { return len(*h) }

// Less implements heap.Interface.
func (h *newestHeap) Less(i, j int) bool { return older((*h)[i], (*h)[j]) }

// Swap implements heap.Interface.
func (h *newestHeap) Swap(i, j int) {
	list := *h
	list[i], list[j] = list[j], list[i]
	list[i].at, list[j].at = i, j
}

// Push implements heap.Interface.
func (h *newestHeap) Push(x any) {
	if one, is := x.(*newestTask); is {
		one.at = len(*h)
		*h = append(*h, one)
	}
}

// Pop implements heap.Interface.
func (h *newestHeap) Pop() any {
	last := len(*h) - 1
	one := (*h)[last]
	*h = (*h)[:last]
	return one
}
