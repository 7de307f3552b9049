package redisfaults

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// B5: the master hangs, its connections open; the sentinels make a replica the
// master. Then the old one goes on, for some seconds as a second master.
func TestFailover(t *testing.T) {
	t.Parallel()
	for _, durability := range inEarnest([]string{config.DurabilityHA}, []string{config.DurabilityHA, config.DurabilityFast}) {
		t.Run(durability, func(t *testing.T) {
			t.Parallel()
			group := startSentinel(t)
			where := group.redis()
			where.Durability, where.ReplicationTimeout = durability, time.Second
			tm := newTeam(t, where)
			stop := tm.load(t)
			old, begun := group.mustMaster(t), time.Now()
			old.Pause(t)
			tm.recovers(t, "after the master began to hang, Sentinel, "+durability, begun, failoverBar)
			group.awaitFailover(t, old)
			old.Resume(t)
			tm.recovers(t, "after the former master went on, Sentinel, "+durability, time.Now(), restartBar)
			group.awaitSync(t) // it is a replica by now
			tm.recovers(t, "after the former master was made a replica, Sentinel, "+durability, time.Now(), restartBar)
			stop()
			tm.settled(t)
		})
	}
}

// B6: all servers and sentinels are gone for a while, and come back.
func TestAllOfSentinelGone(t *testing.T) {
	t.Parallel()
	group := startSentinel(t)
	tm := newTeam(t, group.redis())
	stop := tm.load(t)
	everybody := slices.Concat(group.guards, group.nodes)
	killAll(t, everybody...)
	hold(t, inEarnest(4*time.Second, 20*time.Second))
	restartAll(t, everybody...)
	begun := time.Now()
	group.awaitSync(t)
	t.Logf("the servers agree after %.1f s", time.Since(begun).Seconds())
	// With Sentinel a server waits for 3 s before it says what was lost, and that ids may be given out.
	tm.recovers(t, "after all servers and sentinels were gone and agree again", time.Now(), failoverBar)
	stop()
	tm.settled(t)
}

// A frozen master is replaced; when it goes on it becomes a replica of the new one.
// Then all are killed: each comes back as what it was last, with its data.
func TestSentinelReplacesAFrozenMaster(t *testing.T) {
	t.Parallel()
	group := startSentinel(t)
	where := group.redis()
	if !where.Sentinel() || len(where.SentinelAddrs) != 3 || len(group.replicas(t)) != 2 {
		t.Errorf("reached by %v, %d replicas", where, len(group.replicas(t)))
	}
	old := group.mustMaster(t)
	old.Do(t, "SET", "k", "v")
	old.Do(t, "WAIT", "2", "1000")
	old.Pause(t)
	master := group.awaitFailover(t, old)
	if got := master.Do(t, "GET", "k"); got != "v" {
		t.Errorf("the new master has %v", got)
	}
	old.Resume(t)
	group.awaitSync(t)
	if group.mustMaster(t) != master {
		t.Error("the old master is master again")
	}
	wait.Eventually(t, 5*time.Second, func() bool { return old.Do(t, "GET", "k") == "v" }, "the old master does not follow")
	killAll(t, slices.Concat(group.guards, group.nodes)...)
	restartAll(t, slices.Concat(group.nodes, group.guards)...)
	group.awaitSync(t)
	if got := master.Do(t, "GET", "k"); group.mustMaster(t) != master || got != "v" {
		t.Errorf("after the restart k = %v, the master is %s", got, group.mustMaster(t).Addr())
	}
}

// Without replicas the master refuses to write.
func TestSentinelMasterNeedsAReplica(t *testing.T) {
	t.Parallel()
	group := startSentinel(t)
	master := group.mustMaster(t)
	killAll(t, group.replicas(t)...)
	wait.Eventually(t, patience, func() bool {
		_, err := master.Call("SET", "k", "v")
		return err != nil && strings.Contains(err.Error(), "NOREPLICAS ")
	}, "the master writes without a replica")
}

// High availability needs Sentinel, a master that waits for replicas, and one.
func TestCheckHighAvailability(t *testing.T) {
	t.Parallel()
	group := startSentinel(t)
	master := group.mustMaster(t)
	check := func(setting, value, remedy string, warnings int) {
		t.Helper()
		where := group.redis()
		where.Durability = config.DurabilityHA
		st, err := store.Dial(where, "ns")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = st.Close() }()
		info, err := st.Check(t.Context())
		e, refused := errors.AsType[*conn.SetupError](err)
		if refused && (setting == "" || !strings.HasPrefix(e.Setting, setting) || e.Value != value || !strings.Contains(e.Remedy, remedy)) ||
			!refused && (err != nil || setting != "" || len(info.Warnings) != warnings) {
			t.Errorf("%v, warnings %q; want %q = %s refused with %q, or %d warnings", err, info.Warnings, setting, value, remedy, warnings)
		}
	}
	check("", "", "", 0)
	master.Do(t, "CONFIG", "SET", "min-replicas-max-lag", "11")
	check("", "", "", 1)
	master.Do(t, "CONFIG", "SET", "min-replicas-to-write", "0")
	check("min-replicas-to-write of ", "0", "set it to 1", 0)
	master.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	killAll(t, group.replicas(t)...)
	check("replicas of ", "none", "start them", 0)
}
