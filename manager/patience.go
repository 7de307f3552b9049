package manager

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-go/tdf/internal/base/link"
)

// patience is how long a call that changes something goes on trying while Redis
// is away.
const patience = 10 * time.Second

// patiently makes a call that may be made again, until it is answered.
func patiently[T any](ctx context.Context, m *Manager, call func() (T, error)) (T, error) {
	giveUp := time.Now().Add(patience)
	redis := link.NewSlog(m.log)
	for {
		answer, err := call()
		if err == nil {
			redis.Answered()
			return answer, nil
		}
		if !errors.Is(err, ErrUnreachable) || ctx.Err() != nil || time.Now().After(giveUp) {
			return answer, err
		}
		if !m.wait(ctx, redis.Failed(err)) {
			return answer, context.Cause(ctx)
		}
	}
}
