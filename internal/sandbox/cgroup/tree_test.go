package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	for want, open := range map[string]func() (*Tree, error){
		"name is empty":   func() (*Tree, error) { return Open("", "", "1", Limits{}) },
		"cgroup = x/y":    func() (*Tree, error) { return Open("x/y", "w", "1", Limits{}) },
		"memory_max = -1": func() (*Tree, error) { return Open("", "w", "1", Limits{MemoryMax: -1}) },
		"pids_max = -2":   func() (*Tree, error) { return Open("", "w", "1", Limits{PidsMax: -2}) },
	} {
		if _, err := open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// What is no cgroup is said so, with a remedy, and nothing is made in it.
func TestNotACgroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, place := range []string{dir, dir + "/missing"} {
		tree, err := Open(place, "w", "1", Limits{})
		mustNot(t, err)
		var e *UnavailableError
		if err := tree.CanKill(); !errors.As(err, &e) || !strings.Contains(err.Error(), place) || !strings.Contains(err.Error(), "Delegate=yes") {
			t.Errorf("got %v", err)
		}
		mustNot(t, tree.CanLimit())
		mustNot(t, tree.Close())
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("made: %v, %v", made, err)
	}
	tree := openAt(location{}, "w", "1", Limits{MemoryMax: 1, PidsMax: 1})
	if err := tree.CanKill(); err == nil || !strings.Contains(err.Error(), "mount -t cgroup2") {
		t.Errorf("got %v", err)
	}
	if err := tree.CanLimit(); err == nil || !strings.Contains(err.Error(), "no memory controller") {
		t.Errorf("got %v", err)
	}
	g, err := tree.Slot(0) // does nothing, but works
	mustNot(t, err)
	if g.FD() != -1 || len(g.JoinPaths()) > 0 || g.Kill() != nil {
		t.Errorf("got %+v", g)
	}
	mustNot(t, tree.Close())
}

func TestCloseRemovesAll(t *testing.T) {
	t.Parallel()
	tree := openTree(t, Limits{PidsMax: 50, MemoryMax: 1 << 28})
	a, b := slot(t, tree, 0), slot(t, tree, 1)
	if _, err := tree.Slot(1); err == nil {
		t.Error("two groups for one slot")
	}
	start(t, a, stubborn, a.v2, 6)
	mustNot(t, tree.Close())
	expectGone(t, append(append(a.dirs(), b.dirs()...), tree.places...)...)
}

// A worker that was killed left slots behind; another one of its name lives.
func TestSweep(t *testing.T) {
	t.Parallel()
	old, living := openTree(t, Limits{PidsMax: 50}), openTree(t, Limits{})
	left, other, theirs := slot(t, old, 7), slot(t, old, 0), slot(t, living, 0)
	start(t, left, stubborn, left.v2, 6)
	start(t, theirs, "exec sleep 1000", theirs.v2, 1)
	tree := openTree(t, Limits{})
	mine := slot(t, tree, 0)
	start(t, mine, "exec sleep 1000", mine.v2, 1)
	dead := func(mark string) bool { return mark == old.mark }
	if killed, err := tree.Sweep(dead); err != nil || killed != len([]string{"sh", "sh", "sleep", "sleep", "sleep", "sleep"}) {
		t.Errorf("killed %d, %v", killed, err)
	}
	expectGone(t, append(left.dirs(), other.dirs()...)...)
	for _, slot := range []*Group{mine, theirs} {
		if n := len(members(slot.v2)); n != 1 {
			t.Errorf("%d processes in a slot under way", n)
		}
	}
	if killed, err := tree.Sweep(dead); err != nil || killed != 0 {
		t.Errorf("again: killed %d, %v", killed, err)
	}
	mustNot(t, mine.Kill())
	mustNot(t, theirs.Kill())
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	const most = 32 << 20
	g := slot(t, openTree(t, Limits{MemoryMax: most}), 0)
	cmd := command(g, "head -c 200000000 /dev/zero | tail -n 1 >/dev/null")
	if err := cmd.Run(); err == nil {
		t.Error("200 MB in 32 MiB")
	}
	if n, err := g.OOMKills(); err != nil || n < 1 {
		t.Errorf("OOMKills: %d, %v", n, err)
	}
	if peak, err := g.PeakMemory(); err != nil || peak < most/2 || peak > most {
		t.Errorf("PeakMemory: %d, %v", peak, err)
	}
	if err := g.ResetPeak(); err != nil {
		t.Errorf("ResetPeak: %v", err)
	}
	mustNot(t, command(g, "true").Run())
	if peak, err := g.PeakMemory(); err != nil || peak > most/2 {
		t.Errorf("PeakMemory after a small round: %d, %v", peak, err)
	}
	again := slot(t, g.tree, 1)
	if n, err := again.OOMKills(); err != nil || n != 0 {
		t.Errorf("a new group has %d OOMKills, %v", n, err)
	}
}

func TestWithoutMemoryController(t *testing.T) {
	t.Parallel()
	g := slot(t, openTree(t, Limits{}), 0)
	_, killsErr := g.OOMKills()
	_, peakErr := g.PeakMemory()
	for _, err := range []error{killsErr, peakErr, g.ResetPeak()} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("got %v", err)
		}
	}
	if len(g.JoinPaths()) > 0 {
		t.Errorf("got %v", g.JoinPaths())
	}
}

// Version 2 hands no controller on from a group with processes: the error says so.
func TestNoControllersBelowProcesses(t *testing.T) {
	t.Parallel()
	at, err := own()
	mustNot(t, err)
	have, err := os.ReadFile(filepath.Join(at.v2, "cgroup.controllers"))
	if err != nil || len(strings.Fields(string(have))) == 0 {
		t.Skipf("needs a controller in version 2: %v", err)
	}
	controller := strings.Fields(string(have))[0]
	subtree := filepath.Join(at.v2, "cgroup.subtree_control")
	before, err := os.ReadFile(subtree)
	mustNot(t, err)
	t.Cleanup(func() { // last, when the tree is gone
		if !strings.Contains(string(before), controller) {
			_ = put(subtree, "-"+controller)
		}
	})
	tree := openTree(t, Limits{})
	g := slot(t, tree, 0)
	if err := errors.Join(enable(at.v2, controller), enable(tree.v2, controller)); err != nil {
		t.Skipf("needs the right to enable a controller: %v", err)
	}
	if !offers(g.v2, controller) || offers(g.v2, "no such") {
		t.Error("the slot lacks the controller")
	}
	start(t, g, "exec sleep 1000", g.v2, 1)
	var e *UnavailableError
	if err := tree.tryV2(g.v2, controller); !errors.As(err, &e) || !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "holds processes") {
		t.Errorf("got %v", err)
	}
	mustNot(t, g.Kill())
}
