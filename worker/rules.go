package worker

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/internal/store"
)

// view is what the rules of one moment mean for this worker.
type view struct {
	version, known int64
	read           time.Time
	// turns are what it may take from, queues the queues it serves, also those
	// in which nothing ever waited.
	turns  []route.Turn
	queues []route.Queue
	// maxThreads is the most rounds on the node, over all its workers.
	maxThreads route.Limit
	// setAside says why the node is set aside, for people; empty if it is not.
	setAside string
}

// newView applies the rules to an offer.
func newView(r *store.Rules, offer *route.Offer) *view {
	v := &view{
		version: r.Version, known: r.Known, read: time.Now(), maxThreads: offer.MaxThreads,
		turns: route.Turns(r.Buckets, r.Queues, *offer), queues: served(r.Queues, offer),
	}
	if r.Node.MaxThreadsSet {
		v.maxThreads = r.Node.MaxThreads
	}
	if r.Node.Quarantined != 0 {
		v.setAside = store.ReasonSetAside
		if r.Node.Reason != "" {
			v.setAside += ": " + r.Node.Reason
		}
	}
	return v
}

// served are the queues, the default one among them, whose undemanding tasks
// may run here.
func served(all []route.Queue, offer *route.Offer) []route.Queue {
	if !slices.ContainsFunc(all, func(q route.Queue) bool { return q.Name == route.DefaultQueue }) {
		all = append(slices.Clip(all), route.NewQueue(route.DefaultQueue))
	}
	return slices.DeleteFunc(slices.Clone(all), func(q route.Queue) bool {
		return len(route.Unfit(route.Bucket{Queue: q.Name}, q, *offer)) > 0
	})
}

// rulebook keeps the rules as they were read last: for the dispatcher, who
// claims by them, and for the heartbeat, which shows them.
type rulebook struct {
	store    *store.Store
	offer    route.Offer
	changed  func() // called after new rules were read
	view     atomic.Pointer[view]
	outdated atomic.Bool
}

func newRulebook(st *store.Store, offer route.Offer, changed func()) *rulebook {
	b := &rulebook{store: st, offer: offer, changed: changed}
	b.view.Store(newView(&store.Rules{}, &b.offer))
	b.outdated.Store(true)
	return b
}

// current returns the rules, read anew if they are outdated.
func (b *rulebook) current(ctx context.Context) (*view, error) {
	// Taken back before the reading, so that a change after it is not missed.
	if !b.outdated.Swap(false) {
		return b.last(), nil
	}
	r, err := b.store.Rules(ctx, b.offer.Node)
	if err != nil {
		b.outdate()
		return nil, err
	}
	v, before := newView(&r, &b.offer), b.last()
	b.view.Store(v)
	if v.version != before.version || v.setAside != before.setAside {
		b.changed()
	}
	return v, nil
}

// last returns the rules as they were read last.
func (b *rulebook) last() *view { return b.view.Load() }

// outdate makes the next claim read the rules first.
func (b *rulebook) outdate() { b.outdated.Store(true) }

// outdateAfter does so if they were read that long ago.
func (b *rulebook) outdateAfter(d time.Duration) {
	if time.Since(b.last().read) > d {
		b.outdate()
	}
}
