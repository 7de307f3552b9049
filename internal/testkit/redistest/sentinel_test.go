package redistest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// A frozen master is replaced; when it goes on it becomes a replica of the new one.
// Then all are killed: each comes back as what it was last, with its data.
func TestSentinelReplacesAFrozenMaster(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	where := group.Redis()
	if !where.Sentinel() || len(where.SentinelAddrs) != 3 || len(group.Replicas(t)) != 2 {
		t.Errorf("reached by %v, %d replicas", where, len(group.Replicas(t)))
	}
	old := group.Master(t)
	old.Do(t, "SET", "k", "v")
	old.Do(t, "WAIT", "2", "1000")
	old.Pause(t)
	master := group.AwaitFailover(t, old)
	if got := master.Do(t, "GET", "k"); got != "v" {
		t.Errorf("the new master has %v", got)
	}
	old.Resume(t)
	group.AwaitSync(t)
	if group.Master(t) != master {
		t.Error("the old master is master again")
	}
	wait.Eventually(t, 5*time.Second, func() bool { return old.Do(t, "GET", "k") == "v" }, "the old master does not follow")
	redistest.KillAll(t, append(group.Sentinels(), group.Nodes()...)...)
	redistest.RestartAll(t, append(group.Nodes(), group.Sentinels()...)...)
	group.AwaitSync(t)
	if got := master.Do(t, "GET", "k"); group.Master(t) != master || got != "v" {
		t.Errorf("after the restart k = %v, the master is %s", got, group.Master(t).Addr())
	}
}

// Without replicas the master refuses to write.
func TestSentinelMasterNeedsAReplica(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	master := group.Master(t)
	redistest.KillAll(t, group.Replicas(t)...)
	c := client(t, "unix", master.Socket())
	awaitError(t, func() error { return c.Set(t.Context(), "k", "v", 0).Err() }, "NOREPLICAS ")
}

// awaitError waits until a call fails with an error that begins like that, or with
// an empty text until it does not fail.
func awaitError(t *testing.T, call func() error, start string) {
	t.Helper()
	wait.Eventually(t, 5*time.Second, func() bool {
		err := call()
		return start == "" && err == nil || start != "" && err != nil && strings.HasPrefix(err.Error(), start)
	}, "the answer does not begin with %q", start)
}
