package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// Machine is what it was measured on.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	MemoryGiB int    `json:"memory_gib"`
	Kernel    string `json:"kernel"`
	System    string `json:"system"`
	// Load is the first number of /proc/loadavg: how many wanted a processor in the last minute.
	Load string `json:"load"`
}

// String is one line, without the load.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %d GiB, %s, %s", m.Processor, m.Cores, m.MemoryGiB, m.System, m.Kernel)
}

// busy reports whether all cores had enough to do already when it began.
func (m Machine) busy() bool {
	load, err := strconv.ParseFloat(m.Load, 64)
	return err == nil && load > float64(m.Cores)
}

func thisMachine() Machine {
	load, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	kib, _ := strconv.Atoi(strings.TrimSuffix(value("/proc/meminfo", "MemTotal", ":"), " kB")) // 0 if unknown
	return Machine{
		Processor: value("/proc/cpuinfo", "model name", ":"), Cores: runtime.NumCPU(), MemoryGiB: (kib + 1<<19) >> 20,
		Kernel: "Linux " + strings.TrimSpace(read("/proc/sys/kernel/osrelease")),
		System: strings.Trim(value("/etc/os-release", "PRETTY_NAME", "="), `"`), Load: load,
	}
}

func read(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	return string(text)
}

// value is what stands behind a name in a file of such lines.
func value(file, name, separator string) string {
	for line := range strings.SplitSeq(read(file), "\n") {
		if key, text, found := strings.Cut(line, separator); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(text)
		}
	}
	return "unknown " + name
}

// versions are those of TDF and of what all need.
func versions(ctx context.Context) []Version {
	tdf := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		tdf = info.Main.Version
	}
	redis, err := command(ctx, "redis-server", "--version").Output()
	if err != nil {
		redis = []byte(firstLine(err))
	}
	return []Version{{"TDF", tdf}, {"Go", runtime.Version()}, {"redis-server", strings.TrimSpace(string(redis))}}
}
