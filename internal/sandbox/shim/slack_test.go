package shim

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// The shim is lazy, its programs are not, and neither is the worker.
func TestProgramsHaveNormalTimerSlack(t *testing.T) {
	t.Parallel()
	const file = "/proc/self/timerslack_ns"
	if _, err := os.Stat(file); err != nil {
		t.Skip(err)
	}
	for _, layer := range layers {
		s := open(t, Options{Want: layer})
		if _, text := run(t, s, Program{Dir: script(t, "cat "+file)}); strings.TrimSpace(text) != strconv.Itoa(int(normalSlack)) {
			t.Errorf("%s: a program has a slack of %q", layer, text)
		}
		if os.Geteuid() != 0 {
			continue // an ordinary user may not look at others
		}
		threads, err := os.ReadDir("/proc/" + strconv.Itoa(s.PID()) + "/task")
		if err != nil {
			t.Fatal(err)
		}
		lazy := 0
		for _, thread := range threads {
			text, err := os.ReadFile("/proc/" + thread.Name() + "/timerslack_ns")
			if err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(int(lazySlack)) {
				lazy++
			}
		}
		if lazy == 0 {
			t.Errorf("%s: no thread of the shim is lazy", layer)
		}
	}
	// It may be the thread on which another test starts a shim just now.
	lazyHere := func() bool {
		now, err := os.ReadFile(file)
		return err != nil || strings.TrimSpace(string(now)) == strconv.Itoa(int(lazySlack))
	}
	wait.Eventually(t, within, func() bool { return os.Geteuid() != 0 || !lazyHere() }, "the main thread here is as it was")
}
