package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// WithSmallDisk puts the append-only file, which is written each second, on a file
// system of that size ("8m") of its own, which ends with the process. Mounting it
// needs root; see [CanMount].
func WithSmallDisk(size string) Option {
	return func(s *settings) {
		s.disk = size
		s.config = append(s.config, "--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	}
}

// CanMount skips the test where [WithSmallDisk] is not possible.
func CanMount(tb testing.TB) {
	tb.Helper()
	try := exec.CommandContext(tb.Context(), "unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", tb.TempDir())
	if out, err := try.CombinedOutput(); err != nil {
		tb.Skipf("needs the right to mount a small tmpfs: %v %s", err, out)
	}
}

// dataDir is where a server keeps its data.
func (s *settings) dataDir(dir string) string {
	if s.disk == "" {
		return dir
	}
	return filepath.Join(dir, "disk")
}

// wrapper is the command that starts redis-server where it needs a disk of its own.
func (s *settings) wrapper(dir string) []string {
	if s.disk == "" {
		return nil
	}
	return []string{
		"unshare", "--mount", "--propagation", "private", "sh", "-c",
		`mkdir -p "$1" && mount -t tmpfs -o "size=$2" tmpfs "$1" && shift 2 && exec "$@"`, "sh", s.dataDir(dir), s.disk,
	}
}

// FillDisk fills the disk of [WithSmallDisk].
func (s *Server) FillDisk(tb testing.TB) {
	tb.Helper()
	file, err := os.Create(s.filler())
	if err != nil {
		tb.Fatalf("filling the disk of redis-server: %v", err)
	}
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
	}
	if err := file.Close(); err != nil && !strings.Contains(err.Error(), "no space") {
		tb.Fatalf("filling the disk of redis-server: %v", err)
	}
}

// FreeDisk makes room again.
func (s *Server) FreeDisk(tb testing.TB) {
	tb.Helper()
	if err := os.Remove(s.filler()); err != nil {
		tb.Fatalf("making room for redis-server: %v", err)
	}
}

// filler is the file that fills the disk, as it is seen from outside.
func (s *Server) filler() string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", s.PID()), s.settings.dataDir(s.dir), "filler")
}
