package blame

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// cause says whose fault a failure really is, which the rules cannot see.
type cause int

const (
	passes cause = iota
	byNode
	byTask
)

// plan is one simulation: tasks of max_fails = 0 on nodes with slots.
type plan struct {
	nodes, slots, tasks int
	maxFaults           int
	// back: a task opened again goes to the end of the queue, not to its place.
	back bool
	// off: nothing is judged, gated or excused.
	off     bool
	program func(id int) string
	// outcome of a round of task id on a node, and how long it takes.
	outcome func(r *rand.Rand, now time.Duration, node, id int) (cause, time.Duration)
}

// result is what came of it.
type result struct {
	took        []int // rounds by node
	quarantined []int // times quarantined, by node
	suspected   []int // passes at the gate that ended in Suspect, by node
	wronged     int   // tasks that ended failed through a node
	failed      int   // all tasks that ended failed
	excused     int   // rounds that failed and were not charged, though the node is in order
	rounds      int
	end         time.Duration
}

const (
	simProbe = time.Minute
	simPass  = 1300 * time.Millisecond // between two looks of the server
)

type simTask struct {
	id, key, faults int
	failedOn        map[int]bool
}

type simNode struct {
	Node
	trials  int // failed probes
	trialAt time.Duration
}

type event struct {
	at    time.Duration
	seq   int
	node  int // -1: the server looks
	task  *simTask
	cause cause
	probe bool
}

// ordered is a heap of what comes in some order.
type ordered[T any] struct {
	items  []T
	before func(a, b T) bool
}

func (q *ordered[T]) Len() int           { return len(q.items) }
func (q *ordered[T]) Less(i, j int) bool { return q.before(q.items[i], q.items[j]) }
func (q *ordered[T]) Swap(i, j int)      { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *ordered[T]) Push(x any)         { q.items = append(q.items, x.(T)) }
func (q *ordered[T]) Pop() any {
	end := len(q.items) - 1
	last := q.items[end]
	q.items = q.items[:end]
	return last
}

func sooner(a, b event) bool   { return a.at < b.at || a.at == b.at && a.seq < b.seq }
func ahead(a, b *simTask) bool { return a.key < b.key }

type fleet struct {
	plan
	result
	rand     *rand.Rand
	now      time.Duration
	seq      int
	left     int
	queue    ordered[*simTask]
	events   ordered[event]
	state    []simNode
	evidence map[string]Evidence
}

// simulate runs a plan to the end of its last task.
func simulate(p plan, seed uint64) result {
	f := &fleet{
		plan: p, left: p.tasks, state: make([]simNode, p.nodes), evidence: map[string]Evidence{},
		queue: ordered[*simTask]{before: ahead}, events: ordered[event]{before: sooner},
		rand: rand.New(rand.NewPCG(seed, 4)),
		result: result{
			took: make([]int, p.nodes), quarantined: make([]int, p.nodes), suspected: make([]int, p.nodes),
		},
	}
	for id := range p.tasks {
		heap.Push(&f.queue, &simTask{id: id, key: id, failedOn: map[int]bool{}})
	}
	f.add(event{at: simPass, node: -1})
	for f.claimAll(); f.left > 0; f.claimAll() {
		e := heap.Pop(&f.events).(event)
		f.now = e.at
		if e.node < 0 {
			f.judgeAll()
			f.add(event{at: f.now + simPass, node: -1})
		} else {
			f.settle(e)
		}
	}
	f.end = f.now
	return f.result
}

func (f *fleet) add(e event) {
	f.seq++
	e.seq = f.seq
	heap.Push(&f.events, e)
}

func name(node int) string { return "n" + strconv.Itoa(node) }

func (f *fleet) claimAll() {
	first := f.rand.IntN(f.nodes)
	for i := range f.nodes {
		node := (first + i) % f.nodes
		for f.queue.Len() > 0 && f.mayClaim(node) {
			f.claim(node)
		}
	}
}

func (f *fleet) mayClaim(node int) bool {
	n := f.state[node]
	if n.Gated() && !f.off {
		return f.now >= n.trialAt
	}
	return n.Running < f.slots
}

func (f *fleet) claim(node int) {
	t := heap.Pop(&f.queue).(*simTask)
	c, d := f.outcome(f.rand, f.now, node, t.id)
	n := &f.state[node]
	n.Running++
	if n.Gated() { // one trial at a time
		n.trialAt = f.now + SuspectTrial
	}
	if n.Quarantined {
		n.trialAt = math.MaxInt64
	}
	f.took[node]++
	f.rounds++
	f.add(event{at: f.now + d, node: node, task: t, cause: c, probe: f.state[node].Quarantined})
}

func (f *fleet) settle(e event) {
	f.state[e.node].Running--
	f.count(e)
	if e.cause == passes {
		f.left--
		return
	}
	others := len(e.task.failedOn)
	if e.task.failedOn[e.node] {
		others--
	}
	e.task.failedOn[e.node] = true
	failure := Failure{Node: name(e.node), Others: others}
	if !f.off && Excuse(failure, f.evidence[f.program(e.task.id)], f.state[e.node].Node, f.alive(e.node)) {
		if e.cause == byTask {
			f.excused++
		}
		if e.task.faults++; e.task.faults <= f.maxFaults {
			f.reopen(e.task)
			return
		}
	}
	f.left--
	f.failed++
	if e.cause == byNode {
		f.wronged++
	}
}

func (f *fleet) reopen(t *simTask) {
	if f.back {
		f.seq++
		t.key = f.tasks + f.seq
	}
	heap.Push(&f.queue, t)
}

// count does what the store does with the end of a round.
func (f *fleet) count(e event) {
	node, n := name(e.node), &f.state[e.node]
	program := f.program(e.task.id)
	if f.evidence[program] == nil {
		f.evidence[program] = Evidence{}
	}
	r := f.evidence[program][node]
	if e.cause == passes {
		r.Good++
		f.evidence[program][node] = r
		f.succeed(n, node, e.probe)
		return
	}
	r.Bad++
	r.Run++
	if len(e.task.failedOn) == 0 {
		r.Fresh++
	}
	f.evidence[program][node] = r
	n.Run++
	switch {
	case e.probe && n.Quarantined:
		n.trials++
		n.trialAt = f.now + NextTrial(n.trials, simProbe)
	case n.Gated() && !n.Quarantined:
		n.trialAt = f.now + SuspectTrial
	}
}

func (f *fleet) succeed(n *simNode, node string, probe bool) {
	n.Run = 0
	if probe {
		n.Node, n.trials = Node{Running: n.Running}, 0
	}
	for _, e := range f.evidence {
		if r, ok := e[node]; ok {
			r.Run, r.Fresh = 0, 0
			e[node] = r
		}
	}
}

func (f *fleet) alive(node int) int {
	n := 1
	for i := range f.state {
		if i != node && !f.state[i].Quarantined {
			n++
		}
	}
	return n
}

// judgeAll is one pass of the server.
func (f *fleet) judgeAll() {
	for i := range f.state {
		n := &f.state[i]
		if f.off || n.Quarantined || n.Run < MinRun {
			continue
		}
		var evidence []Evidence
		for _, e := range f.evidence {
			if _, ran := e[name(i)]; ran {
				evidence = append(evidence, e)
			}
		}
		switch v := Judge(name(i), n.Node, evidence, f.alive(i)); {
		case v == Quarantine:
			n.Quarantined = true
			n.trialAt = f.now + NextTrial(0, simProbe)
			f.quarantined[i]++
		case n.Gated() && v == Forgive:
			n.Run = 0
		case n.Gated():
			f.suspected[i]++
		}
	}
}
