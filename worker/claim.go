package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// claimer asks for tasks. A request without an answer is repeated as it was, so
// that a lost reply does not lose tasks: there is one at a time.
type claimer struct {
	mu      sync.Mutex // held from the request to its answer, but not while that waits for work
	backend Claims
	rules   *rulebook
	first   int            // how many claims were carried out: queues take turns
	gathers string         // the queue for whose next task the worker keeps its free slots
	pending *ClaimRequest  // the one that has no answer yet, nil for none
	again   timing.Backoff // between claims by rules that were outdated
}

func newClaimer(b Claims, rules *rulebook) *claimer {
	return &claimer{backend: b, rules: rules, again: timing.Backoff{First: time.Millisecond, Most: time.Second}}
}

// inDoubt reports whether Redis may have given us tasks we do not know of.
func (c *claimer) inDoubt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending != nil
}

// doubts reports that of a session.
func (c *claimer) doubts(incarnation int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending != nil && c.pending.Incarnation == incarnation
}

// claim takes at most free tasks, after the wake-up woken if there was one. The clock is
// that of the answer.
func (c *claimer) claim(ctx context.Context, incarnation int64, free int, woken WakeUp) (ClaimReply, redisClock, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil || c.pending.Incarnation != incarnation {
		v, err := c.rules.current(ctx)
		if err != nil {
			return ClaimReply{}, redisClock{}, err
		}
		c.pending = c.request(v, incarnation, free)
	}
	c.pending.Woken = woken
	reply, err := c.backend.Claim(ctx, *c.pending)
	clock, err := c.answered(&reply, err)
	return reply, clock, err
}

// begin returns a claim that travels with other calls, nil if that is not possible now: another claim is in flight or
// unanswered, or the rules must be read first. Its answer goes to end.
//
// It asks for most tasks, ahead of them ahead of free slots.
func (c *claimer) begin(incarnation int64, most, ahead int) *ClaimRequest {
	if !c.mu.TryLock() {
		return nil
	}
	if c.pending != nil || c.rules.outdated.Load() {
		c.mu.Unlock()
		return nil
	}
	c.pending = c.request(c.rules.last(), incarnation, most)
	c.pending.Ahead = ahead
	return c.pending
}

// end takes the answer to a claim of begin.
func (c *claimer) end(reply *ClaimReply, err error) (redisClock, error) {
	defer c.mu.Unlock()
	return c.answered(reply, err)
}

// wait waits for work, at most d, and claims at most free tasks behind that. No other claim can begin meanwhile. It is not ok, and
// has not waited, if begin refuses.
func (c *claimer) wait(
	ctx context.Context, w WaitFor, d time.Duration, incarnation int64, free int,
) (got Waited, clock redisClock, ok bool) {
	request := c.begin(incarnation, free, 0)
	if request == nil {
		return got, clock, false
	}
	sent := *request
	c.mu.Unlock()
	got = c.backend.WaitAndClaim(ctx, w, d, sent)
	c.mu.Lock()
	request.Waited = true // if it is repeated
	clock, got.Claimed = c.end(&got.Reply, got.Claimed)
	return got, clock, true
}

// answered takes note of the answer to the claim that is pending.
func (c *claimer) answered(reply *ClaimReply, err error) (redisClock, error) {
	if errors.Is(err, ErrLeaseLost) {
		c.pending = nil // what it may have claimed is taken back with its session
	}
	if err != nil {
		return redisClock{}, err
	}
	// Also where the rules were outdated: what claims nothing now did not and
	// will not claim anything under its id.
	c.pending = nil
	if !reply.Stale { // nobody had a turn
		c.first++
		c.gathers = reply.Gathers
	}
	c.learn(reply)
	return newClock(reply.Now), nil
}

// request is a new claim by the rules of v.
func (c *claimer) request(v *view, incarnation int64, free int) *ClaimRequest {
	o := &c.rules.offer
	return &ClaimRequest{
		Worker: o.Worker, Node: o.Node, Incarnation: incarnation, Request: newToken(), Max: free,
		Candidates: v.turns, First: c.first, Gathers: c.gathers, Rules: v.version, Known: v.known,
		MaxThreads: v.maxThreads, Resources: o.Resources,
	}
}

// learn takes note of what an answer says about the rules.
func (c *claimer) learn(reply *ClaimReply) {
	if reply.Stale || reply.NewBuckets {
		c.rules.outdate()
		return
	}
	c.again.Reset()
	// Servers set nodes aside and let them go without a new version of the rules.
	if v := c.rules.last(); reply.NodeFull || v.quarantined != "" {
		c.rules.outdateAfter(quarantineInterval)
	}
}

// quarantineInterval is how old the rules may become while the node may be set
// aside, or be so no longer.
const quarantineInterval = 10 * time.Second

// claimAgain reports whether a claim got nothing because of outdated rules.
func claimAgain(reply *ClaimReply) bool {
	return len(reply.Tasks) == 0 && (reply.Stale || reply.NewBuckets)
}

// view is what the rules of one moment mean for this worker.
type view struct {
	version, known int64
	read           time.Time
	// turns are what it may take from, queues the queues it serves, also those
	// in which nothing ever waited.
	turns  []task.Candidate
	queues []task.QueueSpec
	// maxThreads is the most rounds on the node, over all its workers.
	maxThreads task.Limit
	// quarantined says why the node is quarantined, for people; empty if it is not.
	quarantined string
}

// newView applies the rules to an offer.
func newView(r *Rules, offer *task.Offer) *view {
	v := &view{
		version: r.Version, known: r.Known, read: time.Now(), maxThreads: offer.MaxThreads,
		turns: task.Candidates(r.Buckets, r.Queues, *offer), queues: served(r.Queues, offer),
	}
	if r.Node.MaxThreads != "" {
		v.maxThreads = r.Node.MaxThreads
	}
	if !r.Node.Quarantined.IsZero() {
		v.quarantined = reasonQuarantined
		if r.Node.Reason != "" {
			v.quarantined += ": " + r.Node.Reason
		}
	}
	return v
}

// served are the queues, the default one among them, whose undemanding tasks may run
// here: those without a class of their own, or else those of a class that is served.
func served(all []task.QueueSpec, offer *task.Offer) []task.QueueSpec {
	if !slices.ContainsFunc(all, func(q task.QueueSpec) bool { return q.Name == task.DefaultQueue }) {
		all = append(slices.Clip(all), task.ParseQueue(task.DefaultQueue, nil))
	}
	var class string
	if offer.HandlersOnly && len(offer.Classes) > 0 {
		class, _, _ = strings.Cut(offer.Classes[0], "=")
	}
	return slices.DeleteFunc(slices.Clone(all), func(q task.QueueSpec) bool {
		return len(task.Unfit(task.Bucket{Queue: q.Name, Class: class}, q, *offer)) > 0
	})
}

// rulebook keeps the rules as they were read last: for the dispatcher, who
// claims by them, and for the heartbeat, which shows them.
type rulebook struct {
	backend  Claims
	offer    task.Offer
	stuck    func() int // slots that are
	changed  func()     // called after new rules were read
	view     atomic.Pointer[view]
	outdated atomic.Bool
}

func newRulebook(from Claims, offer task.Offer, stuck func() int, changed func()) *rulebook {
	b := &rulebook{backend: from, offer: offer, stuck: stuck, changed: changed}
	b.view.Store(newView(&Rules{}, &b.offer))
	b.outdated.Store(true)
	return b
}

// current returns the rules, read anew if they are outdated.
func (b *rulebook) current(ctx context.Context) (*view, error) {
	// Taken back before the reading, so that a change after it is not missed.
	if !b.outdated.Swap(false) {
		return b.last(), nil
	}
	r, err := b.backend.Rules(ctx, b.offer.Node)
	if err != nil {
		b.outdate()
		return nil, err
	}
	offer := b.offer
	offer.Slots -= b.stuck()
	v, before := newView(&r, &offer), b.last()
	b.view.Store(v)
	if v.version != before.version || v.quarantined != before.quarantined {
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

// redisClock estimates the time of Redis: an answer's time and the monotonic
// time since then. The way of the answer makes it late, never early.
type redisClock struct {
	answer statemachine.Time
	read   time.Time
}

func newClock(answer statemachine.Time) redisClock {
	return redisClock{answer: answer, read: time.Now()}
}

func (c redisClock) now() statemachine.Time { return c.answer.Add(timing.FromStd(time.Since(c.read))) }

// farAway is beyond what a timer of the system can count.
const farAway = statemachine.Duration(200*365*24*3600) * statemachine.Second

// until is how long it takes until t; ok is false for never.
func (c redisClock) until(t statemachine.Time) (d time.Duration, ok bool) {
	left := t.Sub(c.now())
	if t == statemachine.Never || left > farAway {
		return 0, false
	}
	return max(0, timing.ToStd(left)), true
}

// outlive returns a context that is done at the latest d after ctx.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(d, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		stop()
		cancel()
	}
}
