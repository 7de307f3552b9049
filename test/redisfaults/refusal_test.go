package redisfaults

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// refusals are the errors by which a Redis says that it cannot serve now.
var refusals = []string{
	"LOADING Redis is loading the dataset in memory",
	"READONLY You can't write against a read only replica. script: f0a, on @user_script:5.",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"MISCONF Errors writing to the AOF file: No space left on device",
	"NOREPLICAS Not enough good replicas to write.",
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"CLUSTERDOWN The cluster is down",
	"TRYAGAIN Multiple keys request during rehashing of slot",
	"OOM command not allowed when used memory > 'maxmemory'.",
	"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
	"ERR max number of clients reached",
	"NOAUTH Authentication required.",
}

// through is how a proxy is reached.
func through(t *testing.T, proxy *redistest.Proxy, where config.Redis) config.Redis {
	t.Helper()
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	where.Host = host
	if where.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	return where
}

// B11: Redis refuses all that it is asked, in each of its ways.
func TestRefusals(t *testing.T) {
	t.Parallel()
	srv := durable(t)
	proxy := srv.Proxy(t)
	tm := newTeam(t, through(t, proxy, storetest.Where(srv)))
	stop := tm.load(t)
	for _, text := range refusals {
		proxy.Refuse(redistest.Everything, text)
		hold(t, inEarnest(200*time.Millisecond, 5*time.Second))
		proxy.Accept()
		word, _, _ := strings.Cut(text, " ")
		tm.recovers(t, "after "+word, time.Now(), restartBar)
	}
	stop()
	tm.settled(t)
}

// C9: no hint ever comes. Work is found all the same, and an order reaches the
// worker of a task with its next heartbeat.
func TestWithoutHints(t *testing.T) {
	t.Parallel()
	srv := durable(t)
	proxy := srv.Proxy(t)
	proxy.Refuse(redistest.Command("SUBSCRIBE"), "ERR no hints")
	tm := newTeam(t, through(t, proxy, storetest.Where(srv)))
	tm.recovers(t, "without hints", time.Now(), restartBar)
	tm.settled(t)
}
