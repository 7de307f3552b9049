package workercmd

import (
	"os"
	"testing"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// asCommand makes the test binary be the command, so that tests can start,
// stop and kill it as a process of its own.
const asCommand = "RUN_AS_TDF_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Main(New()))
	}
	redistest.Main(m)
}
