package crewtest

import (
	"context"
	"testing"
)

type daemon struct {
	name string
	run  func(context.Context) error
}

// background runs daemons until the test ends, and then stops all at once: one
// that waits for work notices it after up to a second.
func background(tb testing.TB, daemons []daemon) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ends := make([]chan error, len(daemons))
	for i, d := range daemons {
		ends[i] = make(chan error, 1)
		go func() {
			err := d.run(ctx)
			if ctx.Err() == nil {
				tb.Errorf("%s ended before it was told to", d.name)
			}
			ends[i] <- err
		}()
	}
	tb.Cleanup(func() {
		cancel()
		for i, d := range daemons {
			if err := <-ends[i]; err != nil {
				tb.Errorf("%s: %v", d.name, err)
			}
		}
	})
}
