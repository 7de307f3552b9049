package worker

import (
	"maps"
	"slices"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/internal/store"
)

// anyClass stands for a queue without a class.
const anyClass = "*"

// queueUse is the use of each queue that this worker serves, or of which it
// runs something (Disbatch: queue heartbeat object).
func (w *Worker) queueUse() []store.QueueUse {
	v, running := w.rules.last(), w.pool.byQueue()
	uses := make([]store.QueueUse, 0, len(v.queues)+len(running))
	for i := range v.queues {
		name := v.queues[i].Name
		uses = append(uses, useOf(&v.queues[i], w.opts.Slots, running[name]))
		delete(running, name)
	}
	for _, name := range slices.Sorted(maps.Keys(running)) { // paused meanwhile, or without a record
		q := route.NewQueue(name)
		if i := slices.IndexFunc(v.turns, func(t route.Turn) bool { return t.Queue.Name == name }); i >= 0 {
			q = v.turns[i].Queue
		}
		uses = append(uses, useOf(&q, w.opts.Slots, running[name]))
	}
	return uses
}

// useOf keeps idle + processing = threads, also where a limit was lowered below
// what runs.
func useOf(q *route.Queue, slots, processing int) store.QueueUse {
	threads := slots
	if q.MaxThreads >= 0 {
		threads = min(threads, int(q.MaxThreads))
	}
	threads = max(threads, processing)
	return store.QueueUse{
		Class: classOf(q), Queue: q.Name, Threads: threads, Processing: processing, Idle: threads - processing,
	}
}

// classOf is the class as it is shown.
func classOf(q *route.Queue) string {
	fields := q.Fields()
	if i := slices.Index(fields, "class"); i >= 0 && fields[i+1] != "" {
		return fields[i+1]
	}
	return anyClass
}
