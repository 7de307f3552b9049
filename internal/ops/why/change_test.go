package why_test

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

// Changed is the world once all changes of the reasons that block a task are made: the
// time first, the order of the line last.
func (p *Plan) Changed(id int64, e why.Explanation) (*Plan, error) {
	var changes []why.Remedy
	for _, r := range e {
		if r.Blocks {
			changes = append(changes, r.Change)
		}
	}
	slices.SortStableFunc(changes, func(x, y why.Remedy) int { return cmp.Compare(stage(x), stage(y)) })
	next := p.Clone()
	for _, c := range changes {
		if err := next.change(id, c); err != nil {
			return nil, fmt.Errorf("%+v: %w", c, err)
		}
	}
	return next, nil
}

func stage(c why.Remedy) int {
	switch {
	case c.Object == "time":
		return 0
	case c.Attribute == why.AttrBefore:
		return 2
	default:
		return 1
	}
}

func (p *Plan) change(id int64, c why.Remedy) error {
	switch c.Object {
	case "time":
		at, err := statemachine.ParseTime(c.Value)
		p.Now = max(p.Now, at)
		return err
	case "server":
		p.Gate = c.Value == "on"
		return nil
	case "queue":
		return p.Queue(c.Name).Set(c.Attribute, c.Value)
	case "node":
		if c.Attribute == why.AttrFree {
			return p.free(c.Name, c.Value)
		}
		return p.Node(c.Name).Set(c.Attribute, c.Value)
	case "task":
		return p.changeTask(p.Task(id), c)
	case "plan":
		return p.changePlan(c)
	case "worker":
		return p.changeWorker(c)
	}
	return fmt.Errorf("no object %q", c.Object)
}

func (p *Plan) changeTask(t *Task, c why.Remedy) error {
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

// putFirst takes away the tasks that wait in the queue of t.
func (p *Plan) putFirst(t *Task) {
	id, queue := t.ID, t.Bucket.QueueName()
	p.Tasks = slices.DeleteFunc(p.Tasks, func(o Task) bool {
		return o.ID != id && o.State == statemachine.Open && o.Bucket.QueueName() == queue
	})
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
		r := task.Registration{Name: "new", Node: "new-node", MaxThreads: task.Unlimited, Slots: 1}
		if err := configure(&r, c.Value); err != nil {
			return err
		}
		p.Workers = append(p.Workers, task.Worker{State: task.WorkerReady, Registration: r})
		return nil
	}
	w := &p.Workers[slices.IndexFunc(p.Workers, func(w task.Worker) bool { return w.Name == c.Name })]
	switch c.Attribute {
	case why.AttrState:
		if !w.State.Alive() {
			w.Busy, w.Reason = 0, ""
		}
		w.State = task.WorkerState(c.Value)
	case why.AttrReason:
		w.Reason = c.Value
	case why.AttrFreeSlots:
		n, err := strconv.Atoi(c.Value)
		w.Slots = max(w.Slots, n)
		w.Busy = min(w.Busy, w.Slots-n)
		return err
	case why.AttrSlots:
		var err error
		w.Slots, err = strconv.Atoi(c.Value)
		return err
	case "env":
		w.Env = c.Value
	case "labels":
		w.Labels = append(w.Labels, c.Value)
	case "classes":
		w.Classes = append(w.Classes, c.Value)
	case why.AttrOnly:
		w.HandlersOnly = c.Value != "false"
	case "resources":
		return enlarge(w, c.Value)
	default:
		return fmt.Errorf("no attribute %q", c.Attribute)
	}
	return nil
}

// configure gives a new worker what it must offer.
func configure(r *task.Registration, offer string) (err error) {
	for part := range strings.SplitSeq(offer, "; ") {
		switch name, value, _ := strings.Cut(part, " = "); name {
		case "node":
			r.Node = value
		case "env":
			r.Env = value
		case "labels":
			r.Labels = strings.Split(value, ",")
		case "resources":
			r.Resources, err = task.ParseResources(value)
		case "classes":
			r.Classes = strings.Split(value, ",")
		case why.AttrSlots:
			r.Slots, err = strconv.Atoi(value)
		case "any configuration":
		default:
			return fmt.Errorf("no attribute %q", name)
		}
	}
	return err
}

// enlarge gives a worker's node more of a resource.
func enlarge(w *task.Worker, value string) error {
	amounts, err := task.ParseResources(value)
	if w.Resources == nil {
		w.Resources = task.Resources{}
	}
	maps.Copy(w.Resources, amounts)
	return err
}
