package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// stubborn leaves its session and its parent and does not listen to TERM.
const stubborn = `trap "" TERM; setsid sh -c 'trap "" TERM; sleep 1000 & sleep 1000' & (setsid sleep 1000 &) ; sleep 1000`

// The worker kills a slot whose shim is dead, and another shim gets it anew.
func TestKillReachesAll(t *testing.T) {
	t.Parallel()
	tree := openTree(t, Limits{})
	for range 3 {
		g := slot(t, tree, 3)
		mustNot(t, command(g, "true").Run())
		start(t, g, stubborn, g.v2, 6)
		mustNot(t, g.Kill())
		if left := members(g.v2); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		mustNot(t, g.Kill()) // nothing to do
		mustNot(t, g.Remove())
	}
}

// The ways of Linux before 5.14, and of version 1.
func TestKillEach(t *testing.T) {
	t.Parallel()
	g := slot(t, openTree(t, Limits{PidsMax: 50}), 0)
	for _, dir := range []string{g.v2, pidsDir(g)} {
		start(t, g, stubborn, dir, 6)
		mustNot(t, killEach(dir))
		if left := members(dir); len(left) > 0 {
			t.Errorf("%s: left %v", dir, left)
		}
	}
}

func TestForkBomb(t *testing.T) {
	t.Parallel()
	const most = 40
	g := slot(t, openTree(t, Limits{PidsMax: most}), 0)
	dir := pidsDir(g)
	bomb := filepath.Join(t.TempDir(), "bomb") // each makes others for ever; a fork that fails is tried again
	mustNot(t, os.WriteFile(bomb, []byte(`while :; do (setsid sh "$0" 2>/dev/null &) 2>/dev/null; sleep 0.01; done`), 0o644))
	start(t, g, "exec 2>/dev/null; sh "+bomb+"; while :; do sh "+bomb+"; done", dir, 1)
	wait.Eventually(t, patienceOfTests, func() bool {
		n, err := field(filepath.Join(dir, "pids.events"), "max")
		return err == nil && n > 0
	}, "the bomb hits the limit")
	if n := len(members(dir)); n > most {
		t.Errorf("%d processes with a limit of %d", n, most)
	}
	mustNot(t, g.Kill())
	for _, dir := range g.dirs() {
		if left := members(dir); len(left) > 0 {
			t.Errorf("%s: left %v", dir, left)
		}
	}
}

// A program may make groups in its own, if it is root's.
func TestNestedGroups(t *testing.T) {
	t.Parallel()
	g := slot(t, openTree(t, Limits{PidsMax: 50}), 0)
	for _, dir := range g.dirs() {
		nested := filepath.Join(dir, "a", "b")
		mustNot(t, os.MkdirAll(nested, 0o755))
		start(t, g, `echo 0 >"`+nested+`/cgroup.procs"; sleep 1000 & sleep 1000`, nested, 2)
	}
	mustNot(t, g.Kill())
	mustNot(t, g.Remove())
	expectGone(t, g.dirs()...)
	mustNot(t, g.Remove())
	if g.FD() != -1 {
		t.Error("a descriptor is left")
	}
}

func TestUntilGivesUp(t *testing.T) {
	t.Parallel()
	if err := until(20*time.Millisecond, func() (bool, error) { return false, nil }); !errors.Is(err, ErrPopulated) {
		t.Errorf("got %v", err)
	}
	if err := until(time.Hour, func() (bool, error) { return false, os.ErrInvalid }); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
