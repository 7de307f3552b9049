package store_test

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// raced is what is left of a task of the race.
type raced struct {
	id                   int64
	queue, node          string
	gpus                 int
	pieces               []string
	open, running, ended statemachine.Time
}

// moment is something that happened.
type moment struct {
	at statemachine.Time
	// order puts what happened in the same microsecond: ends, then the rest.
	order int
	do    func()
}

// replay goes through all that the stamps tell, in order, and returns how long a
// task waited at most while there was a place for it, and a worker that waited to fill it.
func (r *limitRace) replay() time.Duration {
	p := &replayed{
		race: r, onQueue: map[string]int{}, onNode: map[string]int{}, onBoth: map[[2]string]int{},
		pieces: map[string]map[string]bool{}, idle: map[string]int{}, line: map[string][]*raced{}, since: map[[2]string]statemachine.Time{},
	}
	var moments []moment
	for _, t := range r.tasks() {
		moments = append(moments,
			moment{t.open, 1, func() { p.line[t.queue] = append(p.line[t.queue], t) }},
			moment{t.running, 2, func() { p.begin(t) }},
			moment{t.ended, 0, func() { p.end(t) }})
	}
	for _, w := range r.waits {
		moments = append(moments, moment{w.begin, 3, func() { p.idle[w.node]++ }}, moment{w.end, 0, func() { p.idle[w.node]-- }})
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
	for i, m := range moments {
		m.do()
		if i+1 == len(moments) || moments[i+1].at != m.at {
			p.look(m.at)
		}
	}
	return p.longest
}

// tasks reads all tasks of the race, in the order of their ids.
func (r *limitRace) tasks() []*raced {
	ids := make([]int64, raceSize)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	found, err := r.sp.Store.Fields(r.t.Context(), ids, "queue", "resources", "0:open", "0:running", "0:executed", "0:node", "0:resources")
	if err != nil {
		r.t.Fatal(err)
	}
	tasks := make([]*raced, len(found))
	for i, f := range found {
		t := &raced{id: ids[i], queue: f["queue"], node: f["0:node"]}
		for field, at := range map[string]*statemachine.Time{"0:open": &t.open, "0:running": &t.running, "0:executed": &t.ended} {
			if *at, err = statemachine.ParseTime(f[field]); err != nil {
				r.t.Fatalf("task %d: %v", t.id, err)
			}
		}
		if f["resources"] != "" {
			list, ok := strings.CutPrefix(f["0:resources"], "gpu:"+strings.TrimPrefix(f["resources"], "gpu=")+"[")
			t.pieces = strings.Fields(strings.TrimSuffix(list, "]"))
			t.gpus = len(t.pieces)
			if !ok || "gpu="+strconv.Itoa(t.gpus) != f["resources"] {
				r.t.Fatalf("task %d asks %s and got %q", t.id, f["resources"], f["0:resources"])
			}
		}
		tasks[i] = t
	}
	return tasks
}

// replayed is the world at one moment of the race.
type replayed struct {
	race    *limitRace
	onQueue map[string]int
	onNode  map[string]int
	onBoth  map[[2]string]int
	pieces  map[string]map[string]bool // in use, by node
	idle    map[string]int             // workers that wait, by node
	line    map[string][]*raced        // tasks that wait, by queue
	since   map[[2]string]statemachine.Time
	longest time.Duration
}

func (p *replayed) begin(t *raced) {
	at := slices.Index(p.line[t.queue], t)
	p.line[t.queue] = slices.Delete(p.line[t.queue], at, at+1)
	p.count(t, 1)
	q := raceQueues()[t.queue]
	for what, c := range map[string][2]int{
		"threads of " + t.queue:    {p.onQueue[t.queue], q.Threads.N()},
		"maxthreads of " + t.queue: {p.onBoth[[2]string{t.queue, t.node}], q.MaxThreads.N()},
		"cap of " + t.node:         {p.onNode[t.node], raceCaps[t.node].N()},
	} {
		if c[0] > c[1] {
			p.race.t.Errorf("task %d at %s: %s is %d, but %d run", t.id, t.running.Text(), what, c[1], c[0])
		}
	}
	for _, piece := range t.pieces {
		if n, _ := strconv.Atoi(piece); p.pieces[t.node][piece] || n >= raceGPUs {
			p.race.t.Errorf("task %d has got gpu %s of %s, which is taken or not there", t.id, piece, t.node)
		}
		if p.pieces[t.node] == nil {
			p.pieces[t.node] = map[string]bool{}
		}
		p.pieces[t.node][piece] = true
	}
}

func (p *replayed) end(t *raced) {
	p.count(t, -1)
	for _, piece := range t.pieces {
		delete(p.pieces[t.node], piece)
	}
}

func (p *replayed) count(t *raced, by int) {
	p.onQueue[t.queue] += by
	p.onNode[t.node] += by
	p.onBoth[[2]string{t.queue, t.node}] += by
}

// look notes since when each node could run a task of each queue and does not.
func (p *replayed) look(at statemachine.Time) {
	for name := range raceQueues() {
		for node := range raceCaps {
			place := [2]string{name, node}
			if p.idle[node] == 0 || !p.fits(name, node) {
				delete(p.since, place)
				continue
			}
			if _, open := p.since[place]; !open {
				p.since[place] = at
			}
			if gap := time.Duration(at.Sub(p.since[place])) * time.Microsecond; gap > p.longest {
				p.longest = gap
			}
		}
	}
}

// fits reports whether the limits allow the next task of a queue to run on a node.
// It keeps the resources it asks for: who comes later does not overtake it.
func (p *replayed) fits(name, node string) bool {
	q := raceQueues()[name]
	below := func(n, limit int) bool { return n < limit }
	if len(p.line[name]) == 0 || !below(p.onQueue[name], q.Threads.N()) || !below(p.onNode[node], raceCaps[node].N()) ||
		!below(p.onBoth[[2]string{name, node}], q.MaxThreads.N()) {
		return false
	}
	next := p.line[name][0] // those of the queue gpu have one priority, and no others ask for any
	return next.gpus <= raceGPUs-len(p.pieces[node])
}
