package statemachine_test

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// exploration is what a breadth-first walk over all situations has found.
type exploration struct {
	states, steps int
	// stuck counts the situations from which no path leads to all tasks archived.
	stuck int
	// fault is the first thing that broke, with the shortest way to it.
	fault error
}

// walk remembers how each situation was first reached and all steps between
// situations.
type walk struct {
	setup  *setup
	seeds  [2]maphash.Seed
	seen   map[[2]uint64]uint32
	parent []uint32
	choice []uint16
	edges  [][2]uint32
	done   []uint32
	buffer []byte
}

// situation is a world and its number.
type situation struct {
	id    uint32
	world world
}

// explore visits every situation that s allows, up to limit.
func explore(s *setup, limit int) exploration {
	k := &walk{setup: s, seen: map[[2]uint64]uint32{}, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	first := s.first()
	id, _ := k.number(&first, 0, 0)
	var steps []step
	for level := []situation{{id, first}}; len(level) > 0; {
		var below []situation
		for i := range level {
			here := &level[i]
			steps = s.next(&here.world, steps[:0])
			for j := range steps {
				there, fresh := k.number(&steps[j].world, here.id, j)
				k.edges = append(k.edges, [2]uint32{here.id, there})
				if fault := k.fault(&steps[j]); fault != nil {
					return k.result(fmt.Errorf("%w, after:\n%s\n%s", fault, k.way(here.id), steps[j]))
				}
				if fresh {
					below = append(below, situation{there, steps[j].world})
				}
			}
			if len(k.parent) > limit {
				return k.result(fmt.Errorf("more than %d situations", limit))
			}
		}
		level = below
	}
	return k.result(nil)
}

func (k *walk) fault(s *step) error {
	if s.fault != nil {
		return s.fault
	}
	return s.world.checkHolders()
}

func (k *walk) result(fault error) exploration {
	e := exploration{states: len(k.parent), steps: len(k.edges), fault: fault}
	if fault == nil {
		e.stuck = k.stuck()
	}
	return e
}

// number returns the number of a situation and whether it is new.
func (k *walk) number(w *world, parent uint32, choice int) (uint32, bool) {
	k.buffer = w.encode(k.setup, k.buffer[:0])
	key := [2]uint64{maphash.Bytes(k.seeds[0], k.buffer), maphash.Bytes(k.seeds[1], k.buffer)}
	if id, ok := k.seen[key]; ok {
		return id, false
	}
	id := uint32(len(k.parent))
	k.seen[key] = id
	k.parent = append(k.parent, parent)
	k.choice = append(k.choice, uint16(choice))
	archived := 0
	for i := range k.setup.tasks {
		archived += int(w.archived[i])
	}
	if archived == k.setup.tasks || w.spent(k.setup) {
		k.done = append(k.done, id)
	}
	return id, true
}

// way tells the steps by which a situation was first reached.
func (k *walk) way(id uint32) string {
	var choices []uint16
	for ; id != 0; id = k.parent[id] {
		choices = append(choices, k.choice[id])
	}
	var told strings.Builder
	w := k.setup.first()
	for _, c := range slices.Backward(choices) {
		s := k.setup.next(&w, nil)[c]
		fmt.Fprintf(&told, "t=%d %s\n", w.now, s)
		w = s.world
	}
	return strings.TrimSuffix(told.String(), "\n")
}

// stuck walks back from the situations in which all is archived and counts
// those it does not reach.
func (k *walk) stuck() int {
	start := make([]uint32, len(k.parent)+1)
	for _, e := range k.edges {
		start[e[1]+1]++
	}
	for i := range k.parent {
		start[i+1] += start[i]
	}
	from, fill := make([]uint32, len(k.edges)), slices.Clone(start)
	for _, e := range k.edges {
		from[fill[e[1]]] = e[0]
		fill[e[1]]++
	}
	reached, left := make([]bool, len(k.parent)), len(k.parent)
	queue := slices.Clone(k.done)
	for len(queue) > 0 {
		id := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if reached[id] {
			continue
		}
		reached[id] = true
		left--
		queue = append(queue, from[start[id]:start[id+1]]...)
	}
	return left
}
