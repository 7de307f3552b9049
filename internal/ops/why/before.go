package why

import (
	"fmt"
	"slices"

	"github.com/tdf-go/tdf/internal/route"
)

// line finds whether tasks of the queue come before this one, or keep what it
// asks.
func (c *candidate) line() {
	ahead := c.ahead()
	kept := map[string]bool{}
	for _, h := range ahead {
		if !c.shelf.short(h.line.demand, kept) {
			c.add(costBusy, KindLine, c.first(), c.lineText(ahead, h))
			return
		}
		keep(kept, h.line.demand)
	}
	for name := range demandOf(c.s.Task.Bucket) {
		if kept[name] {
			text := fmt.Sprintf("node %s keeps %s for a task before it in queue %s, which waits for more (the first is task %d)",
				c.node.Name, name, c.queue.Name, ahead[0].ID)
			c.add(costBusy, KindKept, c.first(), text)
			return
		}
	}
}

// first is the change that puts the task in front.
func (c *candidate) first() Remedy {
	return Remedy{Object: ObjectTask, Name: c.s.name(), Attribute: AttrBefore, Value: "0"}
}

// ahead are the heads that the worker could take and that come before the task,
// in their order.
func (c *candidate) ahead() []head {
	at, me := c.s.At(), c.s.standing()
	q, b := &c.queue.Queue, c.s.Task.Bucket
	var lanes []*lane
	for _, l := range c.s.Lines {
		if l.Bucket.QueueName() == c.queue.Name && len(route.Unfit(l.Bucket, *q, c.worker.Offer)) == 0 {
			lanes = append(lanes, &lane{Line: l, demand: demandOf(l.Bucket)})
		}
	}
	mine := head{line: &lane{Line: Line{Bucket: b}}, Waiting: me, rank: rank(q, b, me.Due, at)}
	all := append(heads(q, lanes, at), mine)
	order(q, all)
	return all[:slices.IndexFunc(all, func(h head) bool { return h.ID == me.ID })]
}

// standing is where the task is in the line of its bucket.
func (s *Situation) standing() Waiting {
	me := s.InLine()
	for i := range s.Lines {
		if s.Lines[i].Bucket.Name() != s.Task.Bucket.Name() {
			continue
		}
		for _, w := range s.Lines[i].First {
			if w.ID == me.ID {
				return w
			}
		}
	}
	return me
}

// lineText says how many tasks are before the task, and names the next.
func (c *candidate) lineText(ahead []head, next head) string {
	before, due, queues := int64(0), int64(0), map[string]bool{}
	for i := range c.s.Lines {
		l := &c.s.Lines[i]
		due += l.Due
		before += l.Before
		queues[l.Bucket.QueueName()] = true
	}
	text := fmt.Sprintf("%s before it in queue %s, next task %d (priority %d, effective %d)",
		things(max(before, int64(len(ahead))), "task is", "tasks are"), c.queue.Name, next.ID, next.line.Bucket.Priority, next.rank)
	if len(queues) > 1 {
		text += fmt.Sprintf("; %d are due in %d queues, which take turns", due, len(queues))
	}
	return text
}
