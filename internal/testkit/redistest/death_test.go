package redistest_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// asVictim is set in the environment of a test binary that only starts a server
// and waits to be killed.
const asVictim = "TDF_REDISTEST_VICTIM"

func TestServerDiesWithTestBinary(t *testing.T) {
	if os.Getenv(asVictim) != "" {
		fmt.Fprintf(os.Stdout, "pid %d\n", redistest.Shared(t).PID())
		<-t.Context().Done()
		return
	}
	t.Parallel()
	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServerDiesWithTestBinary$", "-test.v")
	victim.Env = append(os.Environ(), asVictim+"=1", "TMPDIR="+t.TempDir())
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	pid := readPID(t, bufio.NewScanner(out))
	_ = victim.Process.Kill()
	_ = victim.Wait()
	wait.Eventually(t, 5*time.Second, func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid)
	}, "redis-server %d to die with its test binary", pid)
}

func readPID(t *testing.T, lines *bufio.Scanner) int {
	t.Helper()
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("the test binary named no pid")
	return 0
}

// isZombie tells whether the process is dead but not yet waited for.
func isZombie(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(stat), ") Z ")
}

func TestMissingServerNamesRemedy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	tb := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // Fatalf ends the goroutine
		defer close(done)
		redistest.Start(tb)
	}()
	<-done
	if len(tb.errors) != 1 || !strings.Contains(tb.errors[0], "make test") {
		t.Errorf("reported %q, want the remedy", tb.errors)
	}
}
