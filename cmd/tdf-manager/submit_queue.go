package main

import (
	"cmp"
	"context"

	"github.com/tdf-go/tdf/manager"
)

// queueCheck looks whether the queues of a submission are there, each once: so
// that nothing is opened where one is not.
type queueCheck struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one call
	s    *session
	seen map[string]error
}

func (c *queueCheck) check(name string) error {
	name = cmp.Or(name, c.s.cfg.TaskDefaults.Queue, manager.DefaultQueue)
	if name == manager.DefaultQueue {
		return nil // it is always there
	}
	err, met := c.seen[name]
	if !met {
		_, err = c.s.manager.Queue(c.ctx, name)
		err = c.s.unknownQueue(c.ctx, name, err)
		if c.seen == nil {
			c.seen = map[string]error{}
		}
		c.seen[name] = err
	}
	return err
}
