package cli

import (
	"runtime"
	"testing"
)

func TestUseProcessors(t *testing.T) { //nolint:paralleltest // it is about the process
	before := runtime.GOMAXPROCS(2)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	t.Setenv("GOMAXPROCS", "2")
	UseProcessors(1)
	if n := runtime.GOMAXPROCS(0); n != 2 {
		t.Errorf("%d processors, want 2 as the environment says", n)
	}
	t.Setenv("GOMAXPROCS", "")
	for _, c := range []struct{ asked, want int }{{5, 2}, {1, 1}, {0, 1}} {
		runtime.GOMAXPROCS(2)
		UseProcessors(c.asked)
		if n := runtime.GOMAXPROCS(0); n != c.want {
			t.Errorf("%d processors asked for: %d, want %d", c.asked, n, c.want)
		}
	}
}
