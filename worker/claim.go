package worker

import (
	"context"

	"github.com/tdf-go/tdf/internal/store"
)

// claimer asks for tasks. A request without an answer is repeated under its
// id, so that a lost reply does not lose tasks.
type claimer struct {
	store        *store.Store
	worker, node string
	labels       []string
	known        int            // how many buckets there were when buckets was made
	buckets      []store.Bucket // those this worker may take from
	request      string         // id of the request that has no answer yet
	asked        int            // for how many tasks that request asked
	incarnation  int64          // of the session that made it
}

// inDoubt reports whether Redis may have given us tasks we do not know of.
func (c *claimer) inDoubt() bool { return c.request != "" }

// claim takes at most free tasks. The clock is that of the answer.
func (c *claimer) claim(ctx context.Context, incarnation int64, free int) (store.ClaimReply, redisClock, error) {
	if c.request == "" || c.incarnation != incarnation {
		c.request, c.asked, c.incarnation = store.NewToken(), free, incarnation
	}
	reply, err := c.store.Claim(ctx, store.ClaimRequest{
		Worker: c.worker, Node: c.node, Incarnation: incarnation, Request: c.request,
		Buckets: c.buckets, Known: c.known, Max: c.asked,
	})
	if err != nil {
		return reply, redisClock{}, err
	}
	c.request = ""
	if reply.Buckets != nil {
		c.known, c.buckets = len(reply.Buckets), store.Claimable(reply.Buckets, c.labels...)
		reply.More = reply.More || len(reply.Tasks) == 0 // ask again, now with all buckets
	}
	return reply, newClock(reply.Now), nil
}
