package route

import (
	"github.com/tdf-go/tdf/statemachine"
)

// Order is which of two tasks of the same effective priority comes first.
type Order string

// The orders of a queue.
const (
	Fifo Order = "fifo" // the one that is due longer (the default)
	Lifo Order = "lifo" // the one that became due last
)

// DefaultAging is how long a task waits for one point of priority.
const DefaultAging = 3600 * statemachine.Second

// Queue is a queue and its attributes (Disbatch). Make one with [NewQueue].
type Queue struct { //nolint:recvcheck // Set changes a queue, Fields only reads it
	Name string
	// Description is for people.
	Description string
	// Class is what a worker must offer to take from the queue; empty for none.
	Class string
	// Threads is how many tasks of the queue may run at a time in the whole
	// fleet, MaxThreads on each node (default of both: NoLimit).
	Threads, MaxThreads Limit
	// Pin are the only nodes that take from the queue; Ignore are nodes that do
	// not. With both, Pin counts. Both are sorted; empty is absent.
	Pin, Ignore []string
	// Paused queues are not taken from.
	Paused bool
	// Order is Fifo or Lifo (default Fifo).
	Order Order
	// Aging is how long a task has to wait for one point of priority (default
	// DefaultAging); 0 for never, which is strict priority. It does not count with Lifo (see
	// [Queue.EffectiveAging]).
	Aging statemachine.Duration
	// Defaults are values of new tasks that their opener did not give, by name,
	// each as [ParseDefault] returns it; see [DefaultNames].
	Defaults map[string]string
	// Created is when the queue was made; 0 if nobody recorded it.
	Created statemachine.Time
	// Damaged is what of its record cannot be read; nil for nothing. Such a queue is not taken from, as if it were paused.
	Damaged Damage
}

// NewQueue is a queue without attributes.
func NewQueue(name string) Queue {
	return Queue{Name: name, Threads: NoLimit, MaxThreads: NoLimit, Order: Fifo, Aging: DefaultAging}
}

// EffectiveAging is Aging for a queue that is first in, first out, and 0 for any
// other: who wants the newest task first does not want the old ones to catch up.
func (q *Queue) EffectiveAging() statemachine.Duration {
	if q.Order == Lifo {
		return 0
	}
	return q.Aging
}
