package redisfaults

import (
	"os"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

func TestMain(m *testing.M) {
	conn.Silence()
	redistest.Main(m)
}

// The bars: how long it may take until all clients work again.
const (
	restartBar  = 5 * time.Second  // after the first answer of a Redis that was away, or hung
	failoverBar = 10 * time.Second // after the master has begun to hang, or has died
)

// patience bounds what has no bar.
const patience = 60 * time.Second

// inEarnest chooses between the size of a fault in every run, and with TDF_LONG=1.
func inEarnest[T any](short, long T) T {
	if os.Getenv("TDF_LONG") != "" {
		return long
	}
	return short
}
