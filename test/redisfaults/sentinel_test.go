package redisfaults

import (
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// B5: the master hangs, its connections open; the sentinels make a replica the
// master. Then the old one goes on, for some seconds as a second master.
func TestFailover(t *testing.T) {
	t.Parallel()
	for _, durability := range inEarnest([]string{config.DurabilityHA}, []string{config.DurabilityHA, config.DurabilityFast}) {
		t.Run(durability, func(t *testing.T) {
			t.Parallel()
			group := redistest.StartSentinel(t)
			where := group.Redis()
			where.Durability, where.ReplicationTimeout = durability, time.Second
			tm := newTeam(t, where)
			stop := tm.load(t)
			old, begun := group.Master(t), time.Now()
			old.Pause(t)
			tm.recovers(t, "after the master began to hang, Sentinel, "+durability, begun, failoverBar)
			group.AwaitFailover(t, old)
			old.Resume(t)
			tm.recovers(t, "after the former master went on, Sentinel, "+durability, time.Now(), restartBar)
			group.AwaitSync(t) // it is a replica by now
			tm.recovers(t, "after the former master was made a replica, Sentinel, "+durability, time.Now(), restartBar)
			stop()
			tm.settled(t)
		})
	}
}

// B6: all servers and sentinels are gone for a while, and come back.
func TestAllOfSentinelGone(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	tm := newTeam(t, group.Redis())
	stop := tm.load(t)
	everybody := slices.Concat(group.Sentinels(), group.Nodes())
	redistest.KillAll(t, everybody...)
	hold(t, inEarnest(4*time.Second, 20*time.Second))
	redistest.RestartAll(t, everybody...)
	begun := time.Now()
	group.AwaitSync(t)
	t.Logf("the servers agree after %.1f s", time.Since(begun).Seconds())
	// With Sentinel a server waits for 3 s before it says what was lost, and that ids may be given out.
	tm.recovers(t, "after all servers and sentinels were gone and agree again", time.Now(), failoverBar)
	stop()
	tm.settled(t)
}
