package redisfaults

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// B12: on a Redis Cluster a namespace in braces is whole; the master of its keys is
// killed and its replica takes over; then the slot of its keys moves to another
// master, under load.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	namespace := "{" + redistest.Namespace(t) + "}"
	tm := newTeamIn(t, cluster.Redis(), namespace)
	stop := tm.load(t)
	old, begun := cluster.Owner(t, namespace), time.Now()
	old.Kill(t)
	tm.recovers(t, "after the master was killed, Cluster", begun, failoverBar)
	cluster.AwaitFailover(t, namespace, old)
	old.Restart(t)
	cluster.AwaitSync(t)
	cluster.Move(t, namespace)
	tm.recovers(t, "after the slot was moved, Cluster", time.Now(), restartBar)
	stop()
	tm.settled(t)
}
