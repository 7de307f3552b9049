package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
)

// claimer asks for tasks. A request without an answer is repeated as it was, so
// that a lost reply does not lose tasks: there is one at a time.
type claimer struct {
	mu      sync.Mutex // held from the request to its answer
	store   *store.Store
	rules   *rulebook
	first   int                 // how many claims were carried out: queues take turns
	pending *store.ClaimRequest // the one that has no answer yet, nil for none
	again   timing.Backoff      // between claims by rules that were outdated
}

func newClaimer(st *store.Store, rules *rulebook) *claimer {
	return &claimer{store: st, rules: rules, again: timing.Backoff{First: time.Millisecond, Most: time.Second}}
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

// claim takes at most free tasks. The clock is that of the answer.
func (c *claimer) claim(ctx context.Context, incarnation int64, free int) (store.ClaimReply, redisClock, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil || c.pending.Incarnation != incarnation {
		v, err := c.rules.current(ctx)
		if err != nil {
			return store.ClaimReply{}, redisClock{}, err
		}
		c.pending = c.request(v, incarnation, free)
	}
	reply, err := c.store.Claim(ctx, *c.pending)
	clock, err := c.answered(&reply, err)
	return reply, clock, err
}

// along is a claim to be sent along with something else, nil if that cannot be now: another one is under way or without an
// answer, or the rules are to be read first. Its answer goes to landed.
func (c *claimer) along(incarnation int64, free int) *store.ClaimRequest {
	if !c.mu.TryLock() {
		return nil
	}
	if c.pending != nil || c.rules.outdated.Load() {
		c.mu.Unlock()
		return nil
	}
	c.pending = c.request(c.rules.last(), incarnation, free)
	return c.pending
}

// landed takes the answer to a claim of along.
func (c *claimer) landed(reply *store.ClaimReply, err error) (redisClock, error) {
	defer c.mu.Unlock()
	return c.answered(reply, err)
}

// answered takes note of the answer to the claim that is pending.
func (c *claimer) answered(reply *store.ClaimReply, err error) (redisClock, error) {
	if errors.Is(err, store.ErrLeaseLost) {
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
	}
	c.learn(reply)
	return newClock(reply.Now), nil
}

// request is a new claim by the rules of v.
func (c *claimer) request(v *view, incarnation int64, free int) *store.ClaimRequest {
	o := &c.rules.offer
	return &store.ClaimRequest{
		Worker: o.Worker, Node: o.Node, Incarnation: incarnation, Request: store.NewToken(), Max: free,
		Turns: v.turns, First: c.first, Rules: v.version, Known: v.known,
		MaxThreads: v.maxThreads, Resources: o.Resources,
	}
}

// learn takes note of what an answer says about the rules.
func (c *claimer) learn(reply *store.ClaimReply) {
	if reply.Stale || reply.NewBuckets {
		c.rules.outdate()
		return
	}
	c.again.Reset()
	// Servers set nodes aside and let them go without a new version of the rules.
	if v := c.rules.last(); reply.NodeFull || v.setAside != "" {
		c.rules.outdateAfter(setAsideInterval)
	}
}

// setAsideInterval is how old the rules may become while the node may be set
// aside, or be so no longer.
const setAsideInterval = 10 * time.Second

// claimAgain reports whether a claim got nothing because of outdated rules.
func claimAgain(reply *store.ClaimReply) bool {
	return len(reply.Tasks) == 0 && (reply.Stale || reply.NewBuckets)
}
