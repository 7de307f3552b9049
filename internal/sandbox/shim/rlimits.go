package shim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// resources are the limits by the names of getrlimit(2).
var resources = map[string]int{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU,
	"data": unix.RLIMIT_DATA, "fsize": unix.RLIMIT_FSIZE, "memlock": unix.RLIMIT_MEMLOCK,
	"nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "stack": unix.RLIMIT_STACK,
}

// resourceLimits checks the rlimits; whether this process may set them, the
// launcher finds out.
func resourceLimits(wanted map[string]uint64) ([]rlimit, error) {
	limits := make([]rlimit, 0, len(wanted))
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		resource, ok := resources[name]
		if !ok {
			return nil, &OptionError{Key: "rlimits", Value: name, Err: errors.New("not a resource limit"),
				Remedy: "use one of " + strings.Join(slices.Sorted(maps.Keys(resources)), " ")}
		}
		limits = append(limits, rlimit{Name: name, Resource: resource, Value: wanted[name]})
	}
	return limits, checkHard(limits)
}

// checkHard tells what a process without CAP_SYS_RESOURCE cannot raise.
func checkHard(limits []rlimit) error {
	for _, limit := range limits {
		var now unix.Rlimit
		if err := unix.Prlimit(0, limit.Resource, nil, &now); err != nil {
			return fmt.Errorf("shim: read the limit %s: %w", limit.Name, err)
		}
		if limit.Value > now.Max && !mayRaise() {
			return &OptionError{Key: "rlimits", Value: fmt.Sprintf("%s=%d", limit.Name, limit.Value),
				Err:    fmt.Errorf("above the hard limit %d of this process: %w", now.Max, unix.EPERM),
				Remedy: "lower it, or raise the hard limit that the worker is started with"}
		}
	}
	return nil
}

// mayRaise asks for CAP_SYS_RESOURCE.
func mayRaise() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if unix.Capget(&header, &sets[0]) != nil {
		return false
	}
	return sets[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
