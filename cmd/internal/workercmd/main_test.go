package workercmd

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// asCommand makes the test binary be the command, so that tests can start,
// stop and kill it as a process of its own.
// With the value revealed it says at its end whether others can look into it.
const (
	asCommand = "RUN_AS_TDF_WORKER"
	revealed  = "revealed"
)

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		code := cli.Main(New())
		if os.Getenv(asCommand) == revealed {
			dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
			fmt.Println("dumpable:", dumpable, err)
		}
		os.Exit(code)
	}
	redistest.Main(m)
}
