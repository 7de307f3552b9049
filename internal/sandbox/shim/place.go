package shim

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ThisProcess names this process so that another one of the host can tell whether
// it still lives: boot, PID namespace, process id and start time, with blanks
// between them.
func ThisProcess() string {
	pid := os.Getpid()
	_, start := lookAt(pid)
	return place() + " " + strconv.Itoa(pid) + " " + start
}

// Gone reports whether the process that ThisProcess has named has certainly ended:
// it lived in this boot and PID namespace, and its number is free or another's.
// What is unclear counts as alive.
func Gone(process string) bool {
	words := strings.Fields(process)
	if len(words) != 4 || words[0] == unknown || place() != words[0]+" "+words[1] {
		return false
	}
	pid, err := strconv.Atoi(words[2])
	return err == nil && gone(pid, words[3])
}

// gone reports whether no process of this place has that number and start.
func gone(pid int, start string) bool {
	state, since := lookAt(pid)
	return state == "" || state == "Z" || state == "X" || since != "" && since != start
}

// unknown is a boot that cannot be known.
const unknown = "-"

// place is boot and PID namespace. Where they cannot be known, or /proc is that of
// another namespace, it is like no other process'.
func place() string {
	self := strconv.Itoa(os.Getpid())
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, err2 := os.Readlink("/proc/self/ns/pid")
	shown, err3 := os.Readlink("/proc/self")
	if err != nil || err2 != nil || err3 != nil || shown != self {
		return unknown + " " + self
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

// lookAt returns the state of a process and when it started, in ticks since the
// boot; both are empty if there is none. One that is hidden has the state "?".
func lookAt(pid int) (state, start string) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return "", ""
	}
	// The command name before the last parenthesis may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return "?", ""
	}
	return fields[0], fields[19]
}
