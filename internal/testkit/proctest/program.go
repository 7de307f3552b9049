package proctest

import (
	"os"
	"syscall"
	"testing"
)

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
