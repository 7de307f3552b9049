package chaos

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// crew is all programs of one run.
type crew struct {
	members []*member
	logs    *os.File
	// again counts the members that were started again because they had ended by
	// themselves when they may.
	again int
}

// layers are the containments of the workers that have no place of their own.
// Where one is not available, the worker takes the next weaker one.
var layers = []string{"auto", "pidns", "cgroup", "group"}

func (tr *trial) newFleet(t *testing.T, bin string) *crew {
	t.Helper()
	logs, err := os.Create(filepath.Join(tr.dir, "fleet.log"))
	if err != nil {
		t.Fatal(err)
	}
	f := &crew{logs: logs}
	t.Cleanup(func() {
		for _, m := range f.members {
			m.kill()
		}
		_ = logs.Close()
	})
	for i := range tr.proxy.servers {
		name := fmt.Sprintf("server-%d", i+1)
		f.add(t, server, name, tr.dir, filepath.Join(bin, "tdf-server"), name, "../chaos.cfg", "--set", "http.listen="+tr.proxy.servers[i])
	}
	tdfWorker := filepath.Join(bin, "tdf-worker")
	for i, layer := range layers {
		name := fmt.Sprintf("worker-%d", i+1)
		f.add(t, worker, name, tr.dir, tdfWorker, name, "../chaos.cfg", "--set", "worker.containment="+layer,
			"--set", "worker.commands="+[]string{"off", "on"}[i%2])
	}
	f.add(t, worker, "worker-brief", tr.dir, tdfWorker, "worker-brief", "../chaos.cfg", "--set", "worker.env="+brief.word)
	f.add(t, worker, diskWorker, tr.dir, tr.places.onDisk(tdfWorker, diskWorker, "../chaos.cfg")...)
	f.add(t, worker, wireWorker, tr.dir, tr.places.overWire(tdfWorker, wireWorker, "../chaos.cfg")...)
	for _, name := range []string{"manager-1", "manager-2"} {
		f.add(t, manager, name, tr.dir, filepath.Join(bin, "handler"), "../chaos.cfg", "../handled", name)
	}
	tr.addForeigners(t, f, tdfWorker)
	return f
}

func (f *crew) add(t *testing.T, as role, name, dir string, args ...string) {
	t.Helper()
	m := &member{name: name, role: as, args: args, dir: filepath.Join(dir, name), log: f.logs}
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	f.members = append(f.members, m)
}

// of returns the members of a role that are not away.
func (f *crew) of(as role) []*member {
	return slices.DeleteFunc(slices.Clone(f.members), func(m *member) bool { return m.role != as || m.away() })
}

// complete reports whether all members run.
func (f *crew) complete() bool {
	return !slices.ContainsFunc(f.members, func(m *member) bool { return m.away() || !m.alive() })
}

func (f *crew) named(name string) *member {
	return f.members[slices.IndexFunc(f.members, func(m *member) bool { return m.name == name })]
}

// afterTrouble is how long after Redis, network or disk were away a program may
// still end for it: it gives up a start only when its calls have been repeated.
const afterTrouble = 20 * second

// pauseBeforeStart is how long a member that has ended by itself stays away, as
// a service manager would have it.
const pauseBeforeStart = 300 * time.Millisecond

// tend lets members go on whose time has come, and starts again those that have
// ended by themselves. They may only while Redis, their network or their disk is
// away: a program that cannot reach Redis at its start says so and ends.
func (tr *trial) tend(t *testing.T) {
	t.Helper()
	now := time.Now()
	for _, m := range tr.fleet.members {
		if err := m.resume(now); err != nil {
			t.Fatal(err)
		}
		if m.away() || m.alive() {
			continue
		}
		if m.role == foreign {
			tr.report.OverHTTP.Restarts++
			m.back = now.Add(second)
			continue
		}
		if now.After(tr.trouble) && now.After(m.cut) {
			tr.report.violate(ended, "%s has ended by itself: %v", m.name, m.cmd.ProcessState)
		}
		tr.fleet.again++
		m.back = now.Add(pauseBeforeStart)
	}
}

// verdicts counts how often a server has found a worker dead.
func (f *crew) verdicts(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(f.logs.Name())
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte(" is lost: silent for "))
}
