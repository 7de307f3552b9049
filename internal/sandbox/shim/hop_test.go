package shim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// A program that is another process every millisecond, in no group that is known,
// is caught all the same.
func TestHopperIsCaught(t *testing.T) {
	t.Parallel()
	eachLayer(t, func(t *testing.T, s *Slot) {
		m := newMarked(t, `printf '#!/bin/sh\necho >> hops\n./hop &\n' > hop; chmod +x hop; setsid ./hop & 
until [ "$(wc -l < hops)" -gt 20 ]; do sleep 0.01; done 2>/dev/null; echo > ready; exec sleep 300`)
		for range 5 {
			_ = os.Remove(filepath.Join(m.dir, "ready"))
			b := begin(t, s, m.program())
			m.awaitReady(t)
			b.cancel()
			b.wait(t)
			if b.err != nil || b.result.Cause != Cancelled {
				t.Errorf("got %+v, %v", b.result, b.err)
			}
			m.expectNone(t, 0)
			size := hops(t, m)
			wait.Never(t, 30e6, func() bool { return hops(t, m) != size }, "it goes on")
		}
	})
}

func hops(t *testing.T, m *marked) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(m.dir, "hops"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
