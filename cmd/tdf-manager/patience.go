package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/store"
)

// patience is what a verb has that goes on while Redis is away.
type patience struct {
	s    *session
	lost bool
}

// failed waits a little; the error is the one to end with.
func (p *patience) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", p.s.cmd.Name(), context.Cause(ctx))
	}
	if !errors.Is(err, store.ErrUnreachable) {
		return err
	}
	if !p.lost {
		p.lost = true
		fmt.Fprintf(p.s.cmd.ErrOrStderr(), "tdf-manager: %s; trying again\n", cli.Safe(err.Error()))
	}
	select {
	case <-ctx.Done():
	case <-time.After(chunkWait):
	}
	return nil
}

// answered notes that Redis works.
func (p *patience) answered() {
	if p.lost {
		p.lost = false
		fmt.Fprintln(p.s.cmd.ErrOrStderr(), "tdf-manager: redis answers again")
	}
}
