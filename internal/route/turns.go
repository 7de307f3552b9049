package route

import (
	"cmp"
	"maps"
	"slices"
)

// Turn is a queue with the buckets of it that a worker may take from.
type Turn struct {
	Queue Queue
	// Buckets are sorted by priority, the highest first, then by name.
	Buckets []Bucket
}

// Turns groups those of the buckets that the worker may take from by their
// queues, which are sorted by name. A queue without such a bucket is left out; a
// bucket whose queue is not among queues belongs to one without attributes.
func Turns(buckets []Bucket, queues []Queue, o Offer) []Turn {
	byName := make(map[string]Queue, len(queues))
	for _, q := range queues {
		byName[q.Name] = q
	}
	fit := map[string]*Turn{}
	for _, b := range buckets {
		name := b.QueueName()
		q, known := byName[name]
		if !known {
			q = NewQueue(name)
		}
		if len(Unfit(b, q, o)) > 0 {
			continue
		}
		if fit[name] == nil {
			fit[name] = &Turn{Queue: q}
		}
		fit[name].Buckets = append(fit[name].Buckets, b)
	}
	turns := make([]Turn, 0, len(fit))
	for _, name := range slices.Sorted(maps.Keys(fit)) {
		slices.SortFunc(fit[name].Buckets, before)
		turns = append(turns, *fit[name])
	}
	return turns
}

// before orders the buckets of a queue.
func before(a, b Bucket) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	return cmp.Compare(a.Name(), b.Name())
}
