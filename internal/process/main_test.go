package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// helperVariable makes the test binary act as a worker of its own.
const helperVariable = "PROCESS_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperVariable) {
	case "run":
		helperRun()
	case "seal", "seal-listed":
		helperSeal()
	default:
		goleak.VerifyTestMain(m)
	}
}

// helperRun runs the program of the directory in its first argument.
func helperRun() {
	_, err := Run(context.Background(), Spec{Dir: os.Args[1]})
	exitWith(err)
}

// helperSeal prints which descriptors a program sees that is started after sealing.
func helperSeal() {
	seal := SealDescriptors
	if os.Getenv(helperVariable) == "seal-listed" {
		seal = sealListed
	}
	if err := seal(); err != nil {
		exitWith(err)
	}
	result, err := Run(context.Background(), Spec{Dir: os.Args[1]})
	fmt.Print(string(result.Stdout))
	exitWith(err)
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// program installs content as run.sh in a directory of its own.
func program(t testing.TB, content string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, programFile), content, 0o755)
	return dir
}

// script is a program of sh with a #! line.
func script(t testing.TB, body string) string {
	t.Helper()
	return program(t, "#!/bin/sh\n"+body+"\n")
}

func write(t testing.TB, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

// mustRun runs s with the test's PATH and fails the test on an error.
func mustRun(t testing.TB, s Spec) Result {
	t.Helper()
	if s.Env == nil {
		s.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	result, err := Run(context.Background(), s)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return result
}

// eventually polls until condition holds, for at most ten seconds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("still not: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// alive reports whether pid exists and is no zombie.
func alive(pid int) bool {
	state, group := processState(fmt.Sprint(pid))
	return group != 0 && state != "Z" && state != "X"
}

// readPid reads a process id that a program wrote to a file; 0 if not yet.
func readPid(name string) int {
	content, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	pid := 0
	if n, err := fmt.Sscanf(string(content), "%d\n", &pid); n != 1 || err != nil {
		return 0
	}
	return pid
}

// killAtEnd is a safety net for programs that a failing test leaves behind.
func killAtEnd(t testing.TB, pid int) {
	t.Helper()
	t.Cleanup(func() {
		if pid > 1 && alive(pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
}

// runUntil runs s and cancels it as soon as its program has written a number to file.
func runUntil(t *testing.T, file string, s Spec) (Result, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.Env = []string{"PATH=" + os.Getenv("PATH")}
	go cancelWhen(ctx, cancel, filepath.Join(s.Dir, file))
	return Run(ctx, s)
}

// cancelWhen cancels ctx once the file called name holds a number.
func cancelWhen(ctx context.Context, cancel context.CancelFunc, name string) {
	for readPid(name) == 0 && ctx.Err() == nil {
		<-time.After(time.Millisecond)
	}
	cancel()
}
