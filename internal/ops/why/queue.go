package why

import (
	"fmt"

	"github.com/tdf-go/tdf/internal/route"
)

// ExplainQueue says what keeps the tasks of a queue from being claimed: what
// holds for all of them, then what waits that nobody fits, then who may take
// from the queue and who may not. The task of the situation does not count.
func ExplainQueue(s Situation, name string) Explanation {
	q := s.queue(name)
	found := s.closed(&q)
	text := fmt.Sprintf("%s, %d of them due", things(q.Waiting, "task waits", "tasks wait"), q.Due)
	if q.Oldest != 0 {
		text += ", the oldest" + since(s.Now, q.Oldest)
	}
	found = append(found, Reason{Kind: KindWaiting, Text: text + fmt.Sprintf("; %d running", q.Running) + s.holders(&q)})
	found = append(found, s.unserved(&q)...)
	return append(found, s.servers(&q)...)
}

// closed finds what keeps every task of the queue.
func (s *Situation) closed(q *Queue) Explanation {
	var found Explanation
	change := Remedy{Object: ObjectQueue, Name: q.Name}
	if fields := q.Damaged.Fields(); len(fields) > 0 {
		damaged := route.Reason{Kind: route.KindPaused, Wanted: q.Name, Has: q.Damaged.Text()}
		repair := Remedy{Object: ObjectQueue, Name: q.Name, Attribute: fields[0]}
		found = append(found, Reason{Kind: KindPaused, Text: damaged.String(), Blocks: true, Change: repair})
	}
	if q.Paused {
		change.Attribute, change.Value = "paused", "false"
		found = append(found, Reason{Kind: KindPaused, Text: "queue " + q.Name + " is paused", Blocks: true, Change: change})
	}
	if left(q.Threads, q.Running) <= 0 {
		change.Attribute, change.Value = "threads", next(q.Running)
		text := reached(q.Running, "queue "+q.Name+" in the fleet", "threads", q.Threads)
		found = append(found, Reason{Kind: KindThreads, Text: text + s.holders(q), Blocks: true, Change: change})
	}
	if len(s.alive()) == 0 {
		start := Remedy{Object: ObjectWorker, Attribute: AttrStart, Value: "any configuration"}
		found = append(found, Reason{Kind: KindNoWorker, Text: "no worker is alive", Blocks: true, Change: start})
	}
	return found
}

// unserved are the lines of the queue that no live worker may take from.
func (s *Situation) unserved(q *Queue) Explanation {
	var found Explanation
	alive := s.alive()
	for _, l := range s.Lines {
		if l.Bucket.QueueName() != q.Name || len(alive) == 0 || len(found) == mostOthers {
			continue
		}
		var least []route.Reason
		who := ""
		for _, w := range alive {
			lacks := route.Unfit(l.Bucket, unpaused(q), w.Offer)
			if who == "" || len(lacks) < len(least) {
				who, least = w.Worker, lacks
			}
		}
		if len(least) > 0 {
			text := fmt.Sprintf("%s no live worker; %s comes nearest: %s", things(l.Due, "due task fits", "due tasks fit"), who, least[0])
			found = append(found, Reason{Kind: KindUnfit, Text: text})
		}
	}
	return found
}

// unpaused is the queue for somebody who wants to know what else there is.
func unpaused(q *Queue) route.Queue {
	open := q.Queue
	_ = open.Set("paused", "false") // a value that can be
	open.Damaged = nil
	return open
}

// servers says of each live worker whether it may take from the queue.
func (s *Situation) servers(q *Queue) Explanation {
	var may, not Explanation
	for _, w := range s.alive() {
		who := "worker " + w.Worker + " on " + w.Node
		if lacks := route.Unfit(route.Bucket{Queue: q.Name}, unpaused(q), w.Offer); len(lacks) > 0 {
			not = append(not, Reason{Kind: Kind(lacks[0].Kind), Text: who + " may not take from it: " + lacks[0].String()})
			continue
		}
		c := &candidate{s: s, queue: *q, worker: w, node: s.node(w.Node)}
		c.queue.Threads = route.NoLimit // said already
		c.idle()
		c.limits()
		if len(c.reasons) > 0 {
			r := c.reasons[0]
			not = append(not, Reason{Kind: r.Kind, Text: who + " may take from it, but now: " + r.Text, Change: r.Change})
			continue
		}
		free := things(int64(w.Free()), "free slot", "free slots")
		may = append(may, Reason{Kind: KindServed, Text: who + " may take from it: " + free})
	}
	return append(may, not...)
}
