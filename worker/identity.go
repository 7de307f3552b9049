package worker

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// identity names this process so that a successor on the same host can tell
// whether it still lives: boot, PID namespace, process id and start time; token
// tells several workers of one process apart.
func identity(token string) string {
	_, start := lookAt(os.Getpid())
	return strings.Join([]string{where(), strconv.Itoa(os.Getpid()), start, token}, " ")
}

// dead reports whether the process of that identity certainly has ended: it
// lived in this boot and PID namespace, and its number is free or reused. What
// is unclear counts as alive.
func dead(identity string) bool {
	words := strings.Fields(identity)
	if len(words) != 5 || words[0] == "-" || where() != words[0]+" "+words[1] {
		return false
	}
	pid, err := strconv.Atoi(words[2])
	if err != nil {
		return false
	}
	state, start := lookAt(pid)
	return state == "" || state == "Z" || state == "X" || start != words[3]
}

// where is boot and PID namespace; where they cannot be known, it is like no
// other process'.
func where() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, err2 := os.Readlink("/proc/self/ns/pid")
	if err != nil || err2 != nil {
		return "- " + strconv.Itoa(os.Getpid())
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

// lookAt returns the state of a process and when it started, in ticks since the
// boot; both are empty if there is none.
func lookAt(pid int) (state, start string) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", ""
	}
	// The command name before the last parenthesis may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return "?", ""
	}
	return fields[0], fields[19]
}
