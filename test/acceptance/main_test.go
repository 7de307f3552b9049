package acceptance

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// managers are what the test binary can be with three arguments: the name of it, the
// configuration, and a file.
var managers = map[string]func(cfg, file string) error{fragileManager: runFragile, planBuilder: runBuilder}

// TestMain also makes the test binary a manager, and removes the programs that were
// built for the tests.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && managers[os.Args[1]] != nil {
		if err := managers[os.Args[1]](os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	redistest.Main(m, goleak.Cleanup(func(code int) {
		built.Remove()
		os.Exit(code)
	}))
}

// built are the programs under test.
var built daemontest.Programs

// program returns the path of tdf-server, tdf-worker or tdf-manager.
func program(tb testing.TB, name string) string {
	tb.Helper()
	return built.Path(tb, name)
}
