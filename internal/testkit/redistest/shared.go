package redistest

import (
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// sharedServer is the one server of this test binary. A package variable is what
// makes it one: TestMain and the tests have nothing else in common.
var sharedServer struct {
	sync.Mutex
	server *Server
}

// Main runs the tests of a package, stops the shared server and then fails the
// package if a goroutine is left. Use it as the whole body of TestMain:
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
func Main(m *testing.M, opts ...goleak.Option) {
	goleak.VerifyTestMain(stopAfter{m}, opts...)
}

// stopAfter stops the shared server between the tests and the leak check.
type stopAfter struct{ m *testing.M }

// Run runs the tests and returns their exit code.
func (s stopAfter) Run() int {
	defer stopShared()
	return s.m.Run()
}

func stopShared() {
	sharedServer.Lock()
	defer sharedServer.Unlock()
	if sharedServer.server != nil {
		_ = sharedServer.server.close()
		sharedServer.server = nil
	}
}

// Shared returns the redis-server of this test binary and starts it on first
// use. It may not be stopped, killed or paused. The package needs a TestMain that
// calls [Main].
func Shared(tb testing.TB) *Server {
	tb.Helper()
	sharedServer.Lock()
	defer sharedServer.Unlock()
	if sharedServer.server == nil {
		s, err := launch()
		if err != nil {
			tb.Fatalf("starting the shared redis-server: %v", err)
		}
		s.shared = true
		sharedServer.server = s
	}
	return sharedServer.server
}
