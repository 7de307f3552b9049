package whytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

// Start is the moment of every plan: half a second off all other times, so that
// nothing happens on a boundary.
const Start = 1_000_000*statemachine.Time(statemachine.Second) + 500_000

// drawer makes up a world. In a calm one most things are as plain as can be, so
// that much is claimed; in the others most of it is in the way.
type drawer struct {
	*rapid.T
	calm bool
}

// Draw makes up a world. It is small, so that things meet.
func Draw(t *rapid.T) *Plan {
	return drawer{T: t, calm: rapid.Bool().Draw(t, "calm")}.plan()
}

func (t drawer) plan() *Plan {
	p := &Plan{Now: Start, Gate: t.seldom("gate")}
	for _, name := range []string{route.DefaultQueue, "a", "b"} {
		p.Queues = append(p.Queues, drawQueue(t, name))
	}
	for _, name := range nodes {
		p.Nodes = append(p.Nodes, drawNode(t, name))
	}
	for i := range rapid.IntRange(0, 5).Draw(t.T, "running") {
		p.Tasks = append(p.Tasks, drawRunning(t, int64(100+i)))
	}
	for i := range rapid.IntRange(1, 8).Draw(t.T, "waiting") {
		p.Tasks = append(p.Tasks, drawWaiting(t, int64(1+i)))
	}
	for i := range rapid.IntRange(0, 4).Draw(t.T, "workers") {
		p.Workers = append(p.Workers, drawWorker(t, fmt.Sprintf("w%d", i)))
	}
	return p
}

var (
	nodes   = []string{"n1", "n2", "n3"}
	labels  = []string{"x=1", "x=2", "y=1"}
	demands = []string{"", "", "", "gpu=1", "gpu=2", "gpu=2,mem=1", "mem=2", "mem=3"}
)

// oneOf is one of the values; in a calm world mostly the first.
func oneOf[T any](t drawer, label string, values ...T) T {
	if t.calm && rapid.IntRange(0, 15).Draw(t.T, label) > 0 {
		return values[0]
	}
	return rapid.SampledFrom(values).Draw(t.T, label)
}

func (t drawer) seldom(label string) bool { return oneOf(t, label, false, false, false, true) }

// part is a part of the list, seldom more than nothing.
func part(t drawer, label string, list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(string) bool { return !t.seldom(label) })
}

func drawLimit(t drawer, label string) route.Limit {
	return oneOf(t, label, route.NoLimit, route.NoLimit, route.NoLimit, 0, 1, 2, 3)
}

func drawQueue(t drawer, name string) route.Queue {
	q := route.NewQueue(name)
	pin, ignore := strings.Join(part(t, "pin", nodes), ","), strings.Join(part(t, "ignore", nodes), ",")
	paused, class := t.seldom("paused"), oneOf(t, "class", "", "", "", "c")
	q.Threads, q.MaxThreads = drawLimit(t, "threads"), drawLimit(t, "maxthreads")
	q.Order = rapid.SampledFrom([]route.Order{route.Fifo, route.Lifo}).Draw(t.T, "order")
	q.Aging = rapid.SampledFrom([]statemachine.Duration{0, 2 * statemachine.Second, route.DefaultAging}).Draw(t.T, "aging")
	for key, value := range map[string]string{
		"nodes_pin": pin, "nodes_ignore": ignore, "paused": strconv.FormatBool(paused), "class": class,
	} {
		if err := q.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

func drawNode(t drawer, name string) route.Node {
	n := route.NewNode(name)
	if t.seldom("cap set") {
		n.MaxThreadsSet, n.MaxThreads = true, drawLimit(t, "cap")
	}
	n.Run = oneOf(t, "run", 0, 0, 0, 4, 5)
	if t.seldom("set aside") {
		n.Quarantined = Start - 10*statemachine.Time(statemachine.Second)
	}
	n.TrialAt = oneOf(t, "trial", 0, Start-1_500_000, Start+1_500_000)
	return n
}

func drawBucket(t drawer) route.Bucket {
	return route.Bucket{
		Queue: rapid.SampledFrom([]string{"", "a", "a", "b", "unknown"}).Draw(t.T, "queue"), Env: oneOf(t, "env", "", "", "", "e", "f"),
		Labels: oneOf(t, "labels", "", "", "", "x=1", "x=2", "x=1,y=1"), Resources: rapid.SampledFrom(demands).Draw(t.T, "resources"),
		Priority: rapid.SampledFrom([]int{0, 0, 0, -1, 1, 2}).Draw(t.T, "priority"),
	}
}

func drawWorker(t drawer, name string) why.Worker {
	w := why.Worker{
		Offer: route.Offer{
			Worker: name, Node: rapid.SampledFrom(nodes).Draw(t.T, "node"), Env: oneOf(t, "env", "", "e"), MaxThreads: drawLimit(t, "maxthreads"),
			Classes: oneOf(t, "classes", nil, nil, []string{"c=1"}, []string{"d"}),
		},
		State: oneOf(t, "state", why.Ready, why.Ready, why.Ready, why.Ready, why.Draining, why.Drained, why.Lost, why.Stopped),
		Slots: oneOf(t, "slots", 4, 4, 2, 1, 0), Reason: oneOf(t, "reason", "", "", "", "", "disk full"),
	}
	w.Labels = part(t, "label", append(labels, labels...))
	w.Busy = min(w.Slots, oneOf(t, "busy", 0, 0, 1, 4))
	w.Resources = oneOf(t, "offer", route.Resources{"gpu": 4, "mem": 4}, route.Resources{"gpu": 4, "mem": 4}, route.Resources{"gpu": 2}, nil)
	return w
}

func drawRunning(t drawer, id int64) Task {
	task := Task{ID: id, State: statemachine.Running, Bucket: drawBucket(t)}
	task.Node = rapid.SampledFrom(append(nodes, "gone")).Draw(t.T, "node")
	task.Got = demand(task.Bucket)
	return task
}

func drawWaiting(t drawer, id int64) Task {
	second := func(label string, least, most int) statemachine.Time {
		return Start - 500_000 + statemachine.Time(rapid.IntRange(least, most).Draw(t.T, label))*statemachine.Time(statemachine.Second)
	}
	task := Task{ID: id, State: statemachine.Open, Bucket: drawBucket(t), Since: second("since", -9, 0)}
	if t.seldom("held") {
		task.State = statemachine.Blocked
		drawPlanned(t, &task)
	}
	if t.seldom("start") {
		task.StartAfter = second("start after", -9, 5)
	}
	if t.seldom("rests") {
		task.NotBefore = second("not before", -9, 5)
	}
	return task
}
