package redisfaults

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// B9: Redis forgets all scripts, again and again, under load.
func TestScriptsAreFlushed(t *testing.T) {
	t.Parallel()
	srv := durable(t)
	tm := newTeam(t, storetest.Where(srv))
	stop := tm.load(t)
	end, flushes := time.Now().Add(inEarnest(2*time.Second, 20*time.Second)), 0
	wait.Eventually(t, patience, func() bool {
		srv.Do(t, "SCRIPT", "FLUSH")
		flushes++
		return time.Now().After(end)
	}, "flushing takes too long")
	tm.recovers(t, "after the last of many SCRIPT FLUSH", time.Now(), restartBar)
	stop()
	tm.settled(t)
	t.Logf("%d times", flushes)
}
