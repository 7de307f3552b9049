package cgroup

import (
	"errors"
	"fmt"
)

// ErrPopulated means that processes of a group outlived SIGKILL for five seconds,
// usually because they hang in the kernel (a dead network file system).
var ErrPopulated = errors.New("cgroup: processes survive SIGKILL")

// UnavailableError says why control groups cannot do something here.
type UnavailableError struct {
	// Feature is "kill" or "limits".
	Feature string
	// Err is what is missing or what failed.
	Err error
	// Remedy is what an administrator can do.
	Remedy string
}

// Error names the feature, what failed and the remedy.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("cgroup: no %s: %v; %s", e.Feature, e.Err, e.Remedy)
}

// Unwrap returns what failed.
func (e *UnavailableError) Unwrap() error { return e.Err }

func noKill(err error, remedy string) error {
	return &UnavailableError{Feature: "kill", Err: err, Remedy: remedy}
}

func noLimits(err error, remedy string) error {
	return &UnavailableError{Feature: "limits", Err: err, Remedy: remedy}
}

// The remedies of an UnavailableError.
const (
	remedyMount    = "mount version 2 of cgroups: mount -t cgroup2 none /sys/fs/cgroup/unified"
	remedyDelegate = "give the worker a cgroup: with systemd Delegate=yes and DelegateSubgroup=worker in its unit " +
		"and [worker] cgroup=DIR naming the unit's directory, else a directory of the cgroup file system " +
		"that is its user's own, with the worker started inside it"
	remedyEmpty = "name a delegated cgroup without processes of its own by [worker] cgroup=DIR " +
		"(systemd: Delegate=yes and DelegateSubgroup=worker), or set memory_max and pids_max to 0"
	remedyV1 = "run the worker as root or in cgroups of version 1, for memory and pids, that are its user's own, " +
		"or set memory_max and pids_max to 0"
	remedyController = "enable the controller in the kernel and in the container, or set memory_max or pids_max to 0"
)
