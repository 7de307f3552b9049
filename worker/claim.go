package worker

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/store"
)

// bucketsAge is how long the list of buckets is used before it is read again.
const bucketsAge = time.Second

// claimer asks for tasks. A request without an answer is repeated under its
// id, so that a lost reply does not lose tasks.
type claimer struct {
	store   *store.Store
	worker  string
	buckets []store.Bucket
	read    time.Time // when buckets were read
	request string    // id of the request that has no answer yet
}

// inDoubt reports whether Redis may have given us tasks we do not know of.
func (c *claimer) inDoubt() bool { return c.request != "" }

// claim takes at most batch tasks. The clock is that of the answer.
func (c *claimer) claim(ctx context.Context) (store.ClaimReply, redisClock, error) {
	if err := c.refresh(ctx); err != nil {
		return store.ClaimReply{}, redisClock{}, err
	}
	if c.request == "" {
		c.request = store.NewToken()
	}
	reply, err := c.store.Claim(ctx, store.ClaimRequest{
		Worker: c.worker, Request: c.request, Buckets: c.buckets, Max: batch,
	})
	if err != nil {
		return reply, redisClock{}, err
	}
	c.request = ""
	return reply, newClock(reply.Now), nil
}

func (c *claimer) refresh(ctx context.Context) error {
	if c.buckets != nil && time.Since(c.read) < bucketsAge {
		return nil
	}
	all, err := c.store.Buckets(ctx)
	if err != nil {
		return err
	}
	c.buckets, c.read = store.Claimable(all), time.Now()
	return nil
}
