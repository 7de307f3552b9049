// Package hosttest gives tests what they need of their host: a port, a wire that can be cut, a disk that fills or does not write, a
// terminal of the kernel, certificates, and the processes of a program, wherever they went.
//
// The package is imported from _test.go files only.
package hosttest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// ProcessesWith returns the living processes whose environment has the entry NAME=value.
// A zombie does not live.
func ProcessesWith(entry string) []int {
	var pids []int
	names, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is good
	for _, name := range names {
		environ, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+entry+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// AwaitNoProcess waits until no process with the entry lives any more, at most within.
func AwaitNoProcess(tb testing.TB, within time.Duration, entry string) {
	tb.Helper()
	wait.Eventually(tb, within, func() bool { return len(ProcessesWith(entry)) == 0 }, "processes with %s are left", entry)
}

// WriteProgram writes a file that the test is going to execute. No process is
// forked meanwhile: a child of another test would hold the file open for writing
// until it executes, and the kernel would refuse ours with "text file busy"
// (golang/go#22315).
func WriteProgram(t testing.TB, name, content string, mode os.FileMode) {
	t.Helper()
	if err := write(name, content, mode); err != nil {
		t.Fatal(err)
	}
}

func write(name, content string, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		return err
	}
	return os.Chmod(name, mode) // whatever the umask
}
