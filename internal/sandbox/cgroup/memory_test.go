package cgroup

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The memory is that of the host, or the least limit of the groups above.
func TestMemory(t *testing.T) {
	t.Parallel()
	if n := Memory(); n < 1<<20 || n == math.MaxInt64 {
		t.Errorf("this host has %d bytes", n)
	}
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if n := leastAbove(dir, "memory.max"); n != math.MaxInt64 {
		t.Errorf("without files: %d", n)
	}
	for at, text := range map[string]string{"": "max\n", "..": "4096\n", "../..": "9999\n"} {
		if err := os.WriteFile(filepath.Join(dir, at, "memory.max"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := leastAbove(dir, "memory.max"); n != 4096 {
		t.Errorf("%d, want 4096", n)
	}
	if n := leastAbove("", "memory.max"); n != math.MaxInt64 {
		t.Errorf("outside of all groups: %d", n)
	}
}
