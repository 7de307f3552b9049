package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestTreeName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 100)
	for name, want := range map[string]string{
		"node-1.example_x": "tdf-node-1.example_x",
		"../a b/%":         "tdf-..%2Fa%20b%2F%25",
		"\n":               "tdf-%0A",
	} {
		if got := treeName(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	a, b := treeName(long+"a"), treeName(long+"b")
	if a == b || len(a) > 255 || !strings.Contains(a, "%~") || a != treeName(long+"a") {
		t.Errorf("%s and %s", a, b)
	}
}

// files makes control files like those of the kernel.
func files(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		mustNot(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

func expectFile(t *testing.T, dir, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
		t.Errorf("%s: %q, %v; want %q", name, got, err, want)
	}
}

func TestLimitsOfVersion2(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"memory.max": "", "memory.swap.max": "", "pids.max": ""})
	l := Limits{MemoryMax: 1000, PidsMax: 7}
	mustNot(t, errors.Join(l.apply("memory", dir, false), l.apply("pids", dir, false)))
	expectFile(t, dir, "memory.max", "1000")
	expectFile(t, dir, "memory.swap.max", "0")
	expectFile(t, dir, "pids.max", "7")
	noSwap := files(t, map[string]string{"memory.limit_in_bytes": ""})
	mustNot(t, l.apply("memory", noSwap, true))
	expectFile(t, noSwap, "memory.limit_in_bytes", "1000")
	if err := l.apply("pids", noSwap, true); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// Version 2 accepts a limit below what is used, so it is refused here.
func TestLimitBelowWhatIsUsed(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"memory.max": "", "memory.current": "4096\n"})
	g := &Group{tree: &Tree{limits: Limits{MemoryMax: 8192}}, v2: dir}
	mustNot(t, errors.Join(g.Limit(Limits{}), g.Limit(Limits{MemoryMax: 4096})))
	if err := g.Limit(Limits{MemoryMax: 4095}); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("got %v", err)
	}
}

func TestCountersOfVersion2(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"memory.peak": "4096\n", "memory.events": "low 0\noom 2\noom_kill 3\n"})
	c := openCounters(dir, false)
	if n, err := c.OOMKills(); n != 3 || err != nil {
		t.Errorf("OOMKills: %d, %v", n, err)
	}
	if n, err := c.PeakMemory(); n != 4096 || err != nil {
		t.Errorf("PeakMemory: %d, %v", n, err)
	}
	old := openCounters(files(t, map[string]string{"memory.oom_control": "under_oom 0\n"}), true)
	_, killsErr := old.OOMKills()
	_, peakErr := old.PeakMemory()
	for _, err := range []error{killsErr, peakErr} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("got %v", err)
		}
	}
}

func TestEnable(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"cgroup.subtree_control": "cpu memory\n", "cgroup.controllers": "cpu memory pids\n"})
	mustNot(t, enable(dir, "memory")) // enabled already: nothing is written
	expectFile(t, dir, "cgroup.subtree_control", "cpu memory\n")
	if !offers(dir, "pids") || offers(dir, "pid") || offers(dir+"/no", "pids") {
		t.Error("offers")
	}
}
