package redistest

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

//go:embed preload/clock.c
var clockSource string

// Clock is the wall clock of one redis-server, which can be set while it runs.
type Clock struct{ dir string }

// NewClock makes a clock that is right. It needs a C compiler, as the race
// detector does.
func NewClock(tb testing.TB) *Clock {
	tb.Helper()
	c := &Clock{dir: tb.TempDir()}
	cc := exec.CommandContext(tb.Context(), "cc", "-shared", "-fPIC", "-O1", "-x", "c", "-o", c.path("clock.so"), "-")
	cc.Stdin = strings.NewReader(clockSource)
	if out, err := cc.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %v\n%s", cc.Args, err, out)
	}
	c.Set(tb, 0)
	return c
}

func (c *Clock) path(name string) string { return filepath.Join(c.dir, name) }

// Set makes the clock show the true time and d. It takes effect at once.
func (c *Clock) Set(tb testing.TB, d time.Duration) {
	tb.Helper()
	f, err := os.OpenFile(c.path("offset"), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var us [8]byte
	binary.NativeEndian.PutUint64(us[:], uint64(d.Microseconds()))
	if _, err := f.WriteAt(us[:], 0); err != nil {
		tb.Fatal(err)
	}
}

// WithClock makes a redis-server run by that clock.
func WithClock(c *Clock) Option {
	return WithEnv("LD_PRELOAD="+c.path("clock.so"), "CLOCK_FILE="+c.path("offset"))
}
