package worker

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// gate is a program that says in DIR which slot it is in and waits there for a
// file named release.
const gate = `echo $TDF_SLOT > "$1/$TDF_TASK_ID.tmp"; mv "$1/$TDF_TASK_ID.tmp" "$1/$TDF_TASK_ID"
while [ ! -e "$1/release" ]; do sleep 0.02; done; echo done`

// atGate is the number of programs that have come to the gate in dir.
func atGate(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			n++
		}
	}
	return n
}

// A worker of three slots runs three tasks at a time, each slot one, taken by
// one claim, and the others after them.
func TestSlots(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := t.TempDir()
	p := s.script(t, "p", gate)
	for range 5 {
		s.open(t, p, input(dir))
	}
	s.start(t, setting(t, "slots=3"))
	wait.Eventually(t, patience, func() bool { return atGate(t, dir) == 3 }, "three tasks do not run at a time")
	var claims, used []string
	for id := int64(1); id <= 3; id++ {
		claims = append(claims, strings.SplitN(s.Task(t, id).Fields["0:claim"], ".", 2)[0])
		used = append(used, strings.TrimSpace(awaitFile(t, filepath.Join(dir, strconv.FormatInt(id, 10)))))
	}
	if claims[0] != claims[1] || claims[1] != claims[2] {
		t.Errorf("three claims for three free slots: %v", claims)
	}
	if slices.Sort(used); !slices.Equal(used, []string{"0", "1", "2"}) {
		t.Errorf("slots %v, want 0, 1 and 2", used)
	}
	wait.Never(t, 300*time.Millisecond, func() bool { return atGate(t, dir) > 3 }, "more tasks than slots")
	touch(t, filepath.Join(dir, "release"))
	for id := int64(1); id <= 5; id++ {
		s.await(t, id, sm.Executed)
	}
}

// A shim that was killed while its slot was idle costs no task anything.
func TestIdleShimDies(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.script(t, "p", `echo fine`)
	w := s.start(t)
	s.await(t, s.open(t, p), sm.Executed)
	shim := w.slots[0].known()
	if err := syscall.Kill(shim.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait.Eventually(t, patience, func() bool { return syscall.Kill(shim.PID(), 0) != nil }, "the shim is not reaped")
	for range 2 {
		checkFields(t, s.await(t, s.open(t, p), sm.Executed), map[string]string{"0:output": "fine\n", "0:error": "", "round": "0"})
	}
}
