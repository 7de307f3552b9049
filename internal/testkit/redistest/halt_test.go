package redistest_test

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// A client that is halted before a command has not had it carried out, also not when
// what it left is buried; one that is halted after it has, and knows nothing of it.
func TestProxyHalts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		halt func(*redistest.Proxy, redistest.Match) *redistest.Fault
		want any
	}{
		"before": {(*redistest.Proxy).HaltBefore, nil},
		"after":  {(*redistest.Proxy).HaltAfter, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, victim, s := behindProxy(t)
			key := redistest.Namespace(t) + ":n"
			halt := c.halt(proxy, redistest.Command("incr"))
			if err := victim.Ping(t.Context()).Err(); err != nil {
				t.Fatalf("another command was touched: %v", err)
			}
			ended := make(chan error, 1)
			go func() { ended <- victim.Incr(t.Context(), key).Err() }()
			wait.Closed(t, time.Minute, halt.Done(), "the halt")
			_ = victim.Close()
			if err := wait.Receive(t, time.Minute, ended, "the end of the call"); err == nil {
				t.Error("the client has its answer")
			}
			proxy.Bury()
			wait.Eventually(t, time.Minute, func() bool { return proxy.Links() == 0 }, "no links after the burial")
			if got := s.Do(t, "GET", key); got != c.want {
				t.Errorf("the number is %v, want %v", got, c.want)
			}
			proxy.Up()
			if err := client(t, "tcp", proxy.Addr()).Incr(t.Context(), key).Err(); err != nil {
				t.Errorf("after that: %v", err)
			}
		})
	}
}
