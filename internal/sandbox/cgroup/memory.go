package cgroup

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory is how many bytes this host has, or fewer where the control groups of this process allow fewer; 0 if the host does not tell.
func Memory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	most := int64(min(uint64(info.Totalram)*uint64(info.Unit), math.MaxInt64)) //nolint:unconvert // 32 bits on some platforms
	at, err := own()
	if err != nil {
		return most
	}
	return min(most, leastAbove(at.v2, "memory.max"), leastAbove(at.v1["memory"], "memory.limit_in_bytes"))
}

// leastAbove is the least limit of a group and of those that it is in.
func leastAbove(dir, file string) int64 {
	least := int64(math.MaxInt64)
	for ; len(dir) > 1; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil {
			least = min(least, n)
		}
	}
	return least
}
