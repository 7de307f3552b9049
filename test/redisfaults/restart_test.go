package redisfaults

import (
	"fmt"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// durable is a Redis that keeps everything, as it is set up mostly.
func durable(t *testing.T, opts ...redistest.Option) *redistest.Server {
	t.Helper()
	return redistest.Start(t, append([]redistest.Option{
		redistest.WithConfig("appendonly", "yes"), redistest.WithConfig("appendfsync", "everysec"),
	}, opts...)...)
}

// B1: Redis is killed and started again, over and over, under load.
func TestKilledAndRestarted(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithAppendOnly()) // with everysec, a busy disk makes Redis write later than it answers
	tm := newTeam(t, storetest.Where(srv))
	stop := tm.load(t)
	for n := range inEarnest(3, 10) {
		hold(t, 500*time.Millisecond)
		srv.Kill(t)
		hold(t, time.Duration(n)*500*time.Millisecond) // at once, and after longer and longer
		srv.Restart(t)                                 // returns with the first answer
		tm.recovers(t, fmt.Sprintf("after kill -9 and restart %d", n+1), time.Now(), restartBar)
	}
	stop()
	tm.settled(t)
}
