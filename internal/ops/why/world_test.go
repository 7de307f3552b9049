package why_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Plan is a whole world at one moment, as plain lists.
type Plan struct {
	Now statemachine.Time
	// Gate is quarantine = on.
	Gate    bool
	Queues  []task.QueueSpec
	Nodes   []task.NodeRecord
	Workers []task.Worker
	Tasks   []Task
}

// Task waits, or runs on a node, perhaps without a worker that is known.
type Task struct {
	ID     int64
	State  statemachine.State // open, blocked or running
	Bucket task.Bucket
	// Since is when the task came to be open.
	Since, StartAfter, NotBefore statemachine.Time
	// Plan is the state of the plan of a blocked task, empty for none: then it is
	// held. FailedTask is because of which that plan holds; HandHeld says that the task is held as well, Needs
	// are those that it waits for.
	Plan       task.PlanState
	FailedTask int64
	HandHeld   bool
	Needs      []why.Need
	// Node and Got are those of a running task.
	Node string
	Got  task.Resources
}

// Start is from when on the task may be claimed, and counts as waiting: from the
// start it was given, also a past one, unless it was opened again with a rest.
func (t *Task) Start() statemachine.Time {
	if t.StartAfter > 0 && t.NotBefore == 0 {
		return t.StartAfter
	}
	return max(t.Since, t.StartAfter, t.NotBefore)
}

// Clone is a plan that shares nothing that is changed.
func (p *Plan) Clone() *Plan {
	c := *p
	c.Queues, c.Nodes = slices.Clone(p.Queues), slices.Clone(p.Nodes)
	c.Workers, c.Tasks = slices.Clone(p.Workers), slices.Clone(p.Tasks)
	for i := range c.Workers {
		w := &c.Workers[i]
		w.Labels, w.Classes, w.Resources = slices.Clone(w.Labels), slices.Clone(w.Classes), maps.Clone(w.Resources)
	}
	for i := range c.Tasks {
		c.Tasks[i].Got = maps.Clone(c.Tasks[i].Got)
	}
	return &c
}

// Task is the task of that id.
func (p *Plan) Task(id int64) *Task {
	return &p.Tasks[slices.IndexFunc(p.Tasks, func(t Task) bool { return t.ID == id })]
}

// Queue is the queue of that name, which is made if there is none.
func (p *Plan) Queue(name string) *task.QueueSpec {
	i := slices.IndexFunc(p.Queues, func(q task.QueueSpec) bool { return q.Name == name })
	if i < 0 {
		i, p.Queues = len(p.Queues), append(p.Queues, task.ParseQueue(name, nil))
	}
	return &p.Queues[i]
}

// Node is the node of that name, which is made if there is none.
func (p *Plan) Node(name string) *task.NodeRecord {
	i := slices.IndexFunc(p.Nodes, func(n task.NodeRecord) bool { return n.Name == name })
	if i < 0 {
		i, p.Nodes = len(p.Nodes), append(p.Nodes, task.ParseNode(name, nil))
	}
	return &p.Nodes[i]
}

// demand is what the tasks of a bucket ask.
func demand(b task.Bucket) task.Resources {
	var asked task.Resources
	fields := b.Fields()
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == "resources" {
			asked, _ = task.ParseResources(fields[i+1]) // made up here, so it is one
		}
	}
	return asked
}

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
	for _, name := range []string{task.DefaultQueue, "a", "b"} {
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
	demands = []string{"", "", "", "gpu=1", "gpu=2", "gpu=2,mem=1", "mem=2", "mem=3", "cpus=2", "cpus=4,gpu=1"}
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

func drawLimit(t drawer, label string) task.Limit {
	return oneOf(t, label, task.Unlimited, task.Unlimited, task.Unlimited, task.AtMost(0), task.AtMost(1), task.AtMost(2), task.AtMost(3))
}

func drawQueue(t drawer, name string) task.QueueSpec {
	q := task.ParseQueue(name, nil)
	pin, ignore := strings.Join(part(t, "pin", nodes), ","), strings.Join(part(t, "ignore", nodes), ",")
	paused, class := t.seldom("paused"), oneOf(t, "class", "", "", "", "c")
	q.Threads, q.MaxThreads = drawLimit(t, "threads"), drawLimit(t, "maxthreads")
	q.Order = rapid.SampledFrom([]task.Order{task.Fifo, task.Lifo}).Draw(t.T, "order")
	q.Aging = rapid.SampledFrom([]task.Seconds{-1, task.Seconds(2 * time.Second), task.DefaultAging}).Draw(t.T, "aging")
	for key, value := range map[string]string{
		"nodes_pin": pin, "nodes_ignore": ignore, "paused": strconv.FormatBool(paused), "class": class,
	} {
		if err := q.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

func drawNode(t drawer, name string) task.NodeRecord {
	n := task.ParseNode(name, nil)
	if t.seldom("cap set") {
		n.MaxThreads = drawLimit(t, "cap")
	}
	n.Run = oneOf(t, "run", 0, 0, 0, 4, 5)
	if t.seldom("quarantined") {
		n.Quarantined = task.Moment(Start - 10*statemachine.Time(statemachine.Second))
	}
	n.NextTrial = task.Moment(oneOf(t, "trial", 0, Start-1_500_000, Start+1_500_000))
	return n
}

func drawBucket(t drawer) task.Bucket {
	return task.Bucket{
		Queue: rapid.SampledFrom([]string{"", "a", "a", "b", "unknown"}).Draw(t.T, "queue"), Env: oneOf(t, "env", "", "", "", "e", "f"),
		Labels: oneOf(t, "labels", "", "", "", "x=1", "x=2", "x=1,y=1"), Resources: rapid.SampledFrom(demands).Draw(t.T, "resources"),
		Class:    oneOf(t, "class", "", "", "", "c", "d"),
		Priority: rapid.SampledFrom([]int{0, 0, 0, -1, 1, 2}).Draw(t.T, "priority"),
	}
}

func drawWorker(t drawer, name string) task.Worker {
	w := task.Worker{
		Registration: task.Registration{
			Name: name, Node: rapid.SampledFrom(nodes).Draw(t.T, "node"), Env: oneOf(t, "env", "", "e"), MaxThreads: drawLimit(t, "maxthreads"),
			Classes: oneOf(t, "classes", nil, nil, []string{"c=1"}, []string{"d"}), Slots: oneOf(t, "slots", 4, 4, 2, 1, 0),
			HandlersOnly: t.seldom("handlers only"),
		},
		State:  oneOf(t, "state", task.WorkerReady, task.WorkerReady, task.WorkerReady, task.WorkerReady, task.WorkerDraining, task.WorkerDrained, task.WorkerLost, task.WorkerStopped),
		Reason: oneOf(t, "reason", "", "", "", "", "disk full"),
	}
	w.Labels = part(t, "label", append(labels, labels...))
	w.Busy = min(w.Slots, oneOf(t, "busy", 0, 0, 1, 4))
	w.Resources = oneOf(t, "offer", task.Resources{"gpu": 4, "mem": 4}, task.Resources{"gpu": 4, "mem": 4}, task.Resources{"gpu": 2}, nil)
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

// planID is the id of the plan of a task: each has one of its own.
func planID(id int64) task.PlanID { return task.PlanID(1000 + id) }

// drawPlanned puts a blocked task into a plan, or not.
func drawPlanned(t drawer, w *Task) {
	w.Plan = oneOf(t, "plan", "", task.PlanReady, task.PlanBuilding, task.PlanHeld)
	if w.Plan == "" {
		return
	}
	w.HandHeld = t.seldom("held by hand")
	if w.Plan == task.PlanHeld && t.seldom("by a failure") {
		w.FailedTask = 99
	}
	states := []statemachine.State{statemachine.Open, statemachine.Running, statemachine.Failed}
	for i := range oneOf(t, "needs", 0, 1, 2, 12) {
		w.Needs = append(w.Needs, why.Need{ID: int64(50 + i), State: states[i%3], On: []task.When{task.NeedsSuccess, task.NeedsAny, task.NeedsFailure}[i%3]})
	}
}

// changePlan changes the plan of a task.
func (p *Plan) changePlan(c why.Remedy) error {
	id, err := strconv.ParseInt(c.Name, 10, 64)
	if err != nil {
		return err
	}
	t := p.Task(id - 1000)
	wanted := map[string]task.PlanState{why.AttrReady: task.PlanBuilding, why.AttrHold: task.PlanHeld, why.AttrRetry: task.PlanHeld}
	if t.Plan != wanted[c.Attribute] || (c.Attribute == why.AttrRetry) != (t.FailedTask != 0) {
		return fmt.Errorf("%s is not for a plan that is %s", c.Attribute, t.Plan)
	}
	t.Plan = task.PlanReady
	p.unblock(t)
	return nil
}

// unblock opens a task if nothing keeps it.
func (p *Plan) unblock(t *Task) {
	if t.HandHeld || len(t.Needs) > 0 || t.Plan != "" && t.Plan != task.PlanReady {
		return
	}
	t.State, t.Since = statemachine.Open, p.Now
	if t.StartAfter > 0 { // its place in line is lost
		t.StartAfter = max(t.StartAfter, p.Now)
	}
}
