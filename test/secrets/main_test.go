package secrets

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// TestMain removes the programs that were built for the tests.
func TestMain(m *testing.M) {
	redistest.Main(m, goleak.Cleanup(func(code int) {
		built.Remove()
		os.Exit(code)
	}))
}

// built are the programs under test.
var built daemontest.Programs
