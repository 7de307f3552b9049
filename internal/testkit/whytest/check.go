// Package whytest makes up random situations, and checks what package why says
// of them against whoever can claim: a twin of the claim script in plain Go
// ([Twin]), or the script itself.
//
// A task is claimable if there is a worker whose claim for all its free slots,
// with the first turn at the task's queue, gets it.
package whytest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Claimer can claim.
type Claimer interface {
	// Claimed reports whether a claim of that worker, given by its place in the
	// plan, for all its free slots and with the first turn at the task's queue,
	// would get the task.
	Claimed(p *Plan, worker int, id int64) bool
}

// Tally counts what was checked.
type Tally struct{ Claimable, Blocked int }

// Check holds every waiting task of a plan against what is said of it.
func Check(p *Plan, c Claimer) (Tally, error) {
	var n Tally
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.State == statemachine.Running {
			continue
		}
		claimable := anyone(p, c, t.ID)
		if claimable {
			n.Claimable++
		} else {
			n.Blocked++
		}
		if err := checkTask(p, c, t, claimable); err != nil {
			return n, fmt.Errorf("task %d: %w", t.ID, err)
		}
	}
	return n, nil
}

func anyone(p *Plan, c Claimer, id int64) bool {
	for w := range p.Workers {
		if c.Claimed(p, w, id) {
			return true
		}
	}
	return false
}

func checkTask(p *Plan, c Claimer, t *Task, claimable bool) error {
	e := why.Explain(p.Situation(t.ID))
	if claimable == e.Blocked() {
		return fmt.Errorf("claimable is %v, and the reasons are:\n%s", claimable, told(e))
	}
	for _, r := range e {
		if r.Text == "" || r.Blocks == r.Change.Zero() {
			return fmt.Errorf("a reason that blocks comes with a change, and only that; found %+v", r)
		}
	}
	if claimable {
		return nil
	}
	next, err := p.Changed(e)
	if err != nil {
		return err
	}
	if !anyone(next, c, t.ID) {
		return fmt.Errorf("not claimed once these changes are made:\n%s", told(e))
	}
	return nil
}

// told are reasons for people who mend the test.
func told(e why.Explanation) string {
	var text strings.Builder
	for _, r := range e {
		c := r.Change
		fmt.Fprintf(&text, "%s (blocks: %v): %s -> %s %s %s = %q\n", r.Kind, r.Blocks, r.Text, c.Object, c.Name, c.Attribute, c.Value)
	}
	return text.String()
}

// Situation is what is to be read of the world to explain a task.
func (p *Plan) Situation(id int64) why.Situation {
	t := p.Task(id)
	s := why.Situation{Now: p.Now, Workers: p.Workers, Gate: p.Gate, GateRun: GateRun}
	s.Task = why.Task{Task: statemachine.Task{
		ID: id, State: t.State, StartAfter: t.StartAfter, NotBefore: t.NotBefore, EndBefore: statemachine.Never,
	}, Bucket: t.Bucket, Since: t.Since}
	if t.State == statemachine.Open {
		s.Task.Since = t.Start()
	}
	if t.Plan != "" {
		s.Task.Plan = why.Plan{ID: planID(id), State: t.Plan, FailedTask: t.FailedTask, HeldBy: "ann"}
		s.Task.HandHeld, s.Task.Needs = t.HandHeld, t.Needs
	}
	for _, q := range p.Queues {
		s.Queues = append(s.Queues, p.lookQueue(q))
	}
	for _, n := range p.Nodes {
		s.Nodes = append(s.Nodes, p.lookNode(n))
	}
	s.Lines = p.lines(s.At())
	return s
}

func (p *Plan) lookQueue(q task.Queue) why.Queue {
	look := why.Queue{Queue: q, Running: int64(p.running(q.Name, "")), Nodes: map[string]int64{}}
	for _, t := range p.Tasks {
		switch {
		case t.Bucket.QueueName() != q.Name:
		case t.State == statemachine.Running:
			look.Nodes[t.Node]++
		case t.State == statemachine.Open:
			look.Waiting++
			if start := t.Start(); start <= p.Now {
				look.Due++
				if look.Oldest == 0 || start < look.Oldest {
					look.Oldest = start
				}
			}
		}
	}
	return look
}

func (p *Plan) lookNode(n task.Node) why.Node {
	look := why.Node{Node: n, Running: int64(p.running("", n.Name)), Used: task.Resources{}, Held: map[int64]task.Resources{}}
	for _, t := range p.Tasks {
		if t.State == statemachine.Running && t.Node == n.Name {
			look.Held[t.ID] = t.Got
			for name, amount := range t.Got {
				look.Used[name] += amount
			}
		}
	}
	return look
}

// lines are the buckets as the store reads them.
func (p *Plan) lines(at statemachine.Time) []why.Line {
	byName := map[string]*why.Line{}
	var names []string
	for _, t := range p.Tasks {
		if t.State != statemachine.Open || t.Start() > at {
			continue
		}
		name := t.Bucket.Name()
		if byName[name] == nil {
			byName[name] = &why.Line{Bucket: t.Bucket}
			names = append(names, name)
		}
		l := byName[name]
		l.First, l.Due = append(l.First, why.Waiting{ID: t.ID, Due: t.Start()}), l.Due+1
	}
	lines := make([]why.Line, 0, len(names))
	for _, name := range names {
		l := byName[name]
		sortLane(l.First, p.order(l.Bucket.QueueName()))
		l.First = l.First[:min(len(l.First), p.mostFree())]
		lines = append(lines, *l)
	}
	return lines
}

func sortLane(lane []why.Waiting, order task.Order) {
	slices.SortFunc(lane, func(x, y why.Waiting) int {
		return cmp.Or(cmp.Compare(x.Due, y.Due), cmp.Compare(x.ID, y.ID))
	})
	if order == task.Lifo {
		slices.Reverse(lane)
	}
}

// order is that of a queue, also of one without a record.
func (p *Plan) order(queue string) task.Order { return p.attributes(queue).Order }

func (p *Plan) attributes(queue string) task.Queue {
	for _, q := range p.Queues {
		if q.Name == queue {
			return q
		}
	}
	return task.NewQueue(queue)
}

// mostFree is the most free slots of a worker, and one at least.
func (p *Plan) mostFree() int {
	most := 1
	for i := range p.Workers {
		most = max(most, p.Workers[i].Free())
	}
	return most
}

// Changed is the world once all changes of the reasons that block are made: the
// time first, the order of the line last.
func (p *Plan) Changed(e why.Explanation) (*Plan, error) {
	var changes []why.Remedy
	for _, r := range e {
		if r.Blocks {
			changes = append(changes, r.Change)
		}
	}
	slices.SortStableFunc(changes, func(x, y why.Remedy) int { return cmp.Compare(stage(x), stage(y)) })
	next := p.Clone()
	for _, c := range changes {
		if err := next.change(c); err != nil {
			return nil, fmt.Errorf("%+v: %w", c, err)
		}
	}
	return next, nil
}

func stage(c why.Remedy) int {
	switch {
	case c.Object == why.ObjectTime:
		return 0
	case c.Attribute == why.AttrBefore:
		return 2
	default:
		return 1
	}
}

func (p *Plan) change(c why.Remedy) error {
	switch c.Object {
	case why.ObjectTime:
		at, err := statemachine.ParseTime(c.Value)
		p.Now = max(p.Now, at)
		return err
	case why.ObjectServer:
		p.Gate = c.Value == "on"
		return nil
	case why.ObjectQueue:
		return p.Queue(c.Name).Set(c.Attribute, c.Value)
	case why.ObjectNode:
		if c.Attribute == why.AttrFree {
			return p.free(c.Name, c.Value)
		}
		return p.Node(c.Name).Set(c.Attribute, c.Value)
	case why.ObjectTask:
		return p.changeTask(c)
	case why.ObjectPlan:
		return p.changePlan(c)
	case why.ObjectWorker:
		return p.changeWorker(c)
	}
	return fmt.Errorf("no object %q", c.Object)
}

func (p *Plan) changeTask(c why.Remedy) error {
	id, err := strconv.ParseInt(c.Name, 10, 64)
	if err != nil {
		return err
	}
	t := p.Task(id)
	switch c.Attribute {
	case why.AttrHold:
		t.HandHeld = false
		p.unblock(t)
	case why.AttrNeeds:
		t.Needs = nil
		p.unblock(t)
	case why.AttrListed:
		p.unblock(t)
	case why.AttrBefore:
		p.putFirst(t)
	default:
		return fmt.Errorf("no attribute %q", c.Attribute)
	}
	return nil
}

// putFirst takes away, one after the other, the tasks of the queue that come
// before t.
func (p *Plan) putFirst(t *Task) {
	id, q := t.ID, p.attributes(t.Bucket.QueueName())
	for {
		t = p.Task(id)
		i := slices.IndexFunc(p.Tasks, func(o Task) bool {
			return o.State == statemachine.Open && o.Start() <= p.Now && o.Bucket == t.Bucket && earlier(q, &o, t) < 0
		})
		if i < 0 {
			break
		}
		p.Tasks = slices.Delete(p.Tasks, i, i+1)
	}
	for {
		front := p.fronts(q, nil)[0].ID
		if front == id {
			return
		}
		p.Tasks = slices.DeleteFunc(p.Tasks, func(o Task) bool { return o.ID == front })
	}
}

// free takes resources from running tasks, which go on without.
func (p *Plan) free(node, value string) error {
	amounts, err := task.ParseResources(value)
	for name, missing := range amounts {
		for i := range p.Tasks {
			t := &p.Tasks[i]
			if t.State == statemachine.Running && t.Node == node {
				part := min(t.Got[name], missing)
				if part > 0 {
					t.Got[name] -= part
					missing -= part
				}
			}
		}
		if missing > 0 {
			return fmt.Errorf("no %d more of %s to free", missing, name)
		}
	}
	return err
}

func (p *Plan) changeWorker(c why.Remedy) error {
	if c.Attribute == why.AttrStart {
		offer := c.Offer
		offer.Worker = "new"
		if offer.Node == "" {
			offer.Node = "new-node"
		}
		p.Workers = append(p.Workers, why.Worker{Offer: offer, State: why.Ready, Slots: 1})
		return nil
	}
	w := &p.Workers[slices.IndexFunc(p.Workers, func(w why.Worker) bool { return w.Worker == c.Name })]
	switch c.Attribute {
	case why.AttrState:
		if !w.Alive() {
			w.Busy, w.Reason = 0, ""
		}
		w.State = why.State(c.Value)
	case why.AttrReason:
		w.Reason = c.Value
	case why.AttrFreeSlots:
		w.Slots = max(w.Slots, 1)
		w.Busy = min(w.Busy, w.Slots-1)
	case "env":
		w.Env = c.Value
	case "labels":
		w.Labels = append(w.Labels, c.Value)
	case "classes":
		w.Classes = append(w.Classes, c.Value)
	case "resources":
		return enlarge(w, c.Value)
	default:
		return fmt.Errorf("no attribute %q", c.Attribute)
	}
	return nil
}

// enlarge gives a worker's node more of a resource.
func enlarge(w *why.Worker, value string) error {
	amounts, err := task.ParseResources(value)
	if w.Resources == nil {
		w.Resources = task.Resources{}
	}
	maps.Copy(w.Resources, amounts)
	return err
}
