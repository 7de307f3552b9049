package acceptance

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/daemontest"
	"github.com/tdf-go/tdf/internal/redistest"
)

// TestMain also makes the test binary a manager that dies in its handler, and
// removes the programs that were built for the tests.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == fragileManager {
		if err := runFragile(os.Args[2], os.Args[3]); err != nil {
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
var built = daemontest.Programs{Flags: buildFlags}

// program returns the path of tdf-server, tdf-worker or tdf-manager.
func program(tb testing.TB, name string) string {
	tb.Helper()
	return built.Path(tb, name)
}
