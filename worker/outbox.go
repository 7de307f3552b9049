package worker

import (
	"context"
	"errors"
	"sync"

	"github.com/tdf-go/tdf/internal/store"
)

// outbox sends the reports of all slots, those that come while a call is under way together after it. Where no slot is
// idle, which would be the dispatcher's business, it claims in the same breath for those that their report makes free.
type outbox struct {
	worker *Worker

	mu      sync.Mutex
	waiting []*letter
	sending bool
}

// letter is a report on its way.
type letter struct {
	order *store.Order
	slot  *slot     // that would like another task; nil for none
	turn  chan bool // while others send: true to send what waits, false when this one was sent

	outcome store.Outcome
	err     error
	next    *assignment
}

// One call takes so many reports, and begins none with more than so many bytes before it. Redis is blocked meanwhile.
const (
	mostLetters = 40
	mostBytes   = 256 << 10
)

// send returns when the letter has its outcome, or an error.
func (o *outbox) send(ctx context.Context, l *letter) {
	l.turn = make(chan bool, 1)
	o.mu.Lock()
	o.waiting = append(o.waiting, l)
	first := !o.sending
	o.sending = true
	o.mu.Unlock()
	if !first && !<-l.turn {
		return
	}
	batch := o.take()
	o.deliver(ctx, batch)
	for _, other := range batch[1:] {
		other.turn <- false
	}
	o.handOver()
}

// take returns what is sent next, the sender's own letter first.
func (o *outbox) take() []*letter {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, bytes := 0, 0
	for n < min(len(o.waiting), mostLetters) && bytes <= mostBytes {
		for _, text := range o.waiting[n].order.Fields {
			bytes += len(text)
		}
		n++
	}
	batch := o.waiting[:n:n]
	o.waiting = o.waiting[n:]
	return batch
}

// handOver lets one of those that wait send.
func (o *outbox) handOver() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sending = len(o.waiting) > 0
	if o.sending {
		o.waiting[0].turn <- true
	}
}

// deliver sends letters. What Redis refuses to carry out as a whole is sent one by one, so that none suffers from another.
func (o *outbox) deliver(ctx context.Context, batch []*letter) {
	orders := make([]store.Order, len(batch))
	var free []*slot
	for i, l := range batch {
		orders[i] = *l.order
		if l.slot != nil {
			free = append(free, l.slot)
		}
	}
	outcomes, next, err := o.call(ctx, orders, free)
	for i, l := range batch {
		switch {
		case err == nil:
			l.outcome = outcomes[i]
		case len(batch) > 1 && ctx.Err() == nil && !errors.Is(err, store.ErrUnreachable):
			l.outcome, l.err = o.alone(ctx, l)
		default:
			l.err = err
		}
		l.next = next[l.slot]
	}
}

func (o *outbox) alone(ctx context.Context, l *letter) (store.Outcome, error) {
	outcomes, err := o.worker.opts.Store.Apply(ctx, *l.order)
	if err != nil {
		return store.Outcome{}, err
	}
	return outcomes[0], nil
}

// call makes the moves, and claims for the free slots if that can be now.
func (o *outbox) call(ctx context.Context, orders []store.Order, free []*slot) ([]store.Outcome, map[*slot]*assignment, error) {
	w := o.worker
	request := o.request(len(free))
	if request == nil {
		outcomes, err := w.opts.Store.Apply(ctx, orders...)
		return outcomes, nil, err
	}
	incarnation := request.Incarnation
	turn := w.opts.Store.Turn(ctx, orders, *request)
	clock, err := w.claims.landed(&turn.Reply, turn.Claimed)
	if err != nil { // the dispatcher repeats it once a slot is idle
		w.log.Debug().Err(err).Msg("a claim that went along with a report had no answer")
		return turn.Outcomes, nil, turn.Moved
	}
	w.sayClaimed(&turn.Reply)
	if turn.Moved != nil {
		free = nil // they are not
	}
	return turn.Outcomes, o.assign(turn.Reply.Tasks, clock, incarnation, free), turn.Moved
}

// request is a claim for n slots; nil if it is not the moment for one.
func (o *outbox) request(n int) *store.ClaimRequest {
	w := o.worker
	if n == 0 || w.pool.count(idle) > 0 || w.whyPaused().kind != "" {
		return nil
	}
	session, _, _ := w.lease.now()
	return w.claims.along(session.Incarnation, n)
}

// assign gives tasks to slots, and hands back those that none may begin any more.
func (o *outbox) assign(tasks []store.Claimed, clock redisClock, incarnation int64, free []*slot) map[*slot]*assignment {
	w := o.worker
	next := make(map[*slot]*assignment, len(tasks))
	for i := range tasks {
		if i < len(free) && w.pool.keep(free[i], tasks[i].Bucket.QueueName()) {
			next[free[i]] = &assignment{&tasks[i], clock, incarnation}
			continue
		}
		w.working.Go(func() { w.handBack(w.reports, tasks[i:i+1], clock) })
	}
	return next
}
