package store_test

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	await "github.com/tdf-go/tdf/internal/testkit/wait"
)

// A subscription whose connection hangs, while others work, is made anew; so is one
// that is cut. Ending it does not wait.
func TestSubscriptionIsMadeAnew(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	proxy := sp.Server.Proxy(t)
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	sp.Where.Host, sp.Where.ReadTimeout = host, 500*time.Millisecond
	if sp.Where.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	changes, stop := sp.Dial(t).Watch(t.Context())
	hint := func() bool {
		sp.Raw.Publish(t.Context(), sp.Key("changed"), "")
		select {
		case <-changes:
			return true
		default:
			return false
		}
	}
	heard := func() {
		t.Helper()
		await.Eventually(t, 10*time.Second, hint, "nothing is heard")
	}
	heard()
	before := proxy.Taken()
	proxy.Mute() // only a new connection helps
	await.Eventually(t, 10*time.Second, func() bool { return proxy.Taken() > before }, "the silent connection is kept")
	heard()
	proxy.Cut()
	heard()
	begun := time.Now()
	stop()
	await.Within(t, "ending", begun, time.Now(), time.Second)
}
