package shim

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// A program inherits three descriptors, and the shim its socket and its timer,
// whatever is open here without close-on-exec.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	leak, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0) // no O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(leak) }()
	for name, o := range paths() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, o)
			_, text := run(t, s, Program{Dir: public(t, `exec ls /proc/self/fd`)})
			if text != "0\n1\n2\n3\n" { // 3 is the directory that ls reads
				t.Errorf("a program has %q", text)
			}
		})
	}
	needRoot(t, "the descriptors of a shim")
	eachLayer(t, func(t *testing.T, s *Slot) {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", s.PID(), entry.Name()))
			switch {
			case target == "/dev/null", strings.HasPrefix(target, "socket:"), strings.HasPrefix(target, "anon_inode:"),
				strings.HasPrefix(target, "/memfd:tdf-shim-stderr"), strings.Contains(target, "cgroup"):
			default:
				t.Errorf("the shim has %s -> %s", entry.Name(), target)
			}
		}
	})
}

// PID 1 is all that a program in a PID namespace sees beside itself, and it shows nothing.
func TestProgramSeesOnlyItsNamespace(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Want: PIDNamespace})
	if s.hostProc != "" {
		t.Fatalf("no /proc of its own: %s", s.hostProc)
	}
	_, text := run(t, s, Program{Dir: script(t, `[ $$ -lt 50 ] && echo few; ls -d /proc/[0-9]* | wc -l; tr '\0' ' ' < /proc/1/cmdline; echo
cat /proc/1/environ 2>/dev/null | wc -c; kill -9 1; kill -TERM 1; kill -STOP 1; echo alive`)})
	lines := strings.Split(text, "\n")
	if len(lines) != 6 || lines[0] != "few" || lines[1] > "5" || !strings.HasPrefix(lines[2], "tdf-shim ") || lines[3] != "0" || lines[4] != "alive" {
		t.Errorf("got %q", text)
	}
	_, text = run(t, s, Program{Dir: script(t, `grep ^Cap[PEA] /proc/self/status; cat /proc/self/cgroup >/dev/null`)})
	if os.Geteuid() != 0 && strings.Count(text, "0000000000000000") != 3 {
		t.Errorf("capabilities of an ordinary user: %q", text)
	}
}

// What programs see on their own /proc is no matter of the host's.
func TestMountsStayInside(t *testing.T) {
	t.Parallel()
	before, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	run(t, open(t, Options{Want: PIDNamespace}), Program{Dir: script(t, ":")})
	after, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || string(after) != string(before) {
		t.Errorf("mounts changed: %s\n%s", before, after)
	}
}

// Orphans of a long round are reaped while it runs.
func TestOrphansAreReaped(t *testing.T) {
	t.Parallel()
	eachLayer(t, func(t *testing.T, s *Slot) {
		dir := script(t, `i=0; while [ $i -lt 50 ]; do (sleep 0.0$i &); i=$((i+1)); done; echo > ready; exec sleep 300`)
		m := newMarked(t, "")
		m.dir = dir
		begin(t, s, m.program())
		m.awaitReady(t)
		wait.Eventually(t, 5*time.Second, func() bool { return childrenOf(s.PID()) == 1 }, "only run.sh is left")
	})
}

// childrenOf counts children, zombies too.
func childrenOf(parent int) int {
	n := 0
	for _, pid := range processes() {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == fmt.Sprint(parent) {
			n++
		}
	}
	return n
}

// A thousand rounds leave neither descriptors nor processes, here or in the shim.
func TestThousandRoundsLeakNothing(t *testing.T) {
	t.Parallel()
	rounds := 1000
	if testing.Short() {
		rounds = 50
	}
	eachLayer(t, func(t *testing.T, s *Slot) {
		dir := script(t, ":")
		p := Program{Dir: dir, Env: []string{path}}
		run(t, s, p)
		before := shimFDs(s)
		for i := range rounds {
			if i%10 == 0 {
				_, err := s.Run(context.Background(), Program{Dir: dir + "/no"})
				expectReason(t, "start error", err, "program directory cannot be entered")
			}
			if r, err := s.Run(context.Background(), p); err != nil || r.ExitCode != 0 {
				t.Fatalf("round %d: %+v, %v", i, r, err)
			}
		}
		fds := shimFDs(s)
		if fds != before || childrenOf(s.PID()) != 0 {
			t.Errorf("the shim has %d descriptors instead of %d, and %d children", fds, before, childrenOf(s.PID()))
		}
	})
}

// shimFDs counts the descriptors of a shim, 0 for who may not know.
func shimFDs(s *Slot) int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	return len(entries)
}
