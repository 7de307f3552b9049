package shim

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

func needRoot(t *testing.T, what string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for " + what)
	}
}

func TestRlimits(t *testing.T) {
	t.Parallel()
	o := Options{Rlimits: map[string]uint64{"nofile": 77, "core": 0, "fsize": 1 << 20, "cpu": 1}}
	for _, layer := range layers {
		o.Want = layer
		s := open(t, o)
		_, text := run(t, s, Program{Dir: script(t, `ulimit -n; ulimit -Hn; ulimit -Hc; ulimit -Hf; ulimit -t`)})
		if text != "77\n77\n0\n2048\n1\n" {
			t.Errorf("%s: got %q", layer, text)
		}
	}
	r, _ := run(t, open(t, o), Program{Dir: script(t, `while :; do :; done`)})
	if r.Signal != syscall.SIGKILL && r.Signal != syscall.SIGXCPU || r.UserTime+r.SystemTime < 5e8 {
		t.Errorf("cpu: got %+v", r)
	}
}

func TestRunAs(t *testing.T) {
	t.Parallel()
	needRoot(t, "run_as")
	const body = `id -u; id -g; id -G; echo $HOME $USER,$LOGNAME; grep -c . /proc/self/uid_map; ` +
		`(: > /etc/tdf-shim-test) 2>/dev/null || echo refused`
	for _, layer := range layers {
		for _, limits := range []map[string]uint64{nil, {"core": 0}} {
			for runAs, want := range map[string]string{
				"nobody":      "65534\n65534\n65534\n/nonexistent nobody,nobody\n1\nrefused\n",
				"1234:4321":   "1234\n4321\n4321\n/ 1234,1234\n1\nrefused\n",
				"daemon:mail": "1\n8\n8 1\n/usr/sbin daemon,daemon\n1\nrefused\n",
			} {
				s := open(t, Options{Want: layer, RunAs: runAs, Rlimits: limits, Name: t.Name() + string(layer) + runAs + cause(limits)})
				_, text := run(t, s, Program{Dir: public(t, body), Env: []string{path, "HOME=/root", "USER=root"}})
				if text != want {
					t.Errorf("%s %s %v: got %q", layer, runAs, limits, text)
				}
			}
		}
	}
}

// What starts a program does not heed the variables that are for it; they win over those of the user.
func TestVariablesAreForTheProgram(t *testing.T) {
	t.Parallel()
	needRoot(t, "run_as")
	for _, limits := range []map[string]uint64{nil, {"core": 0}} {
		s := open(t, Options{Want: Group, RunAs: "nobody", Rlimits: limits, Name: t.Name() + cause(limits)})
		_, text := run(t, s, Program{
			Dir: public(t, `echo "$GODEBUG $HOME $USER $A"`), Env: []string{path, "HOME=/root", "A=1"},
			Variables: map[string]string{"GODEBUG": "inittrace=1", "HOME": "/h", "A": "2"},
		})
		if text != "inittrace=1 /h nobody 2\n" {
			t.Errorf("%v: got %q", limits, text)
		}
	}
}

func cause(limits map[string]uint64) string { return strings.Repeat("l", len(limits)) }

// A start may have failed because there is no other thread to be had: what finds out why runs on the same one.
func TestDiagnosisNeedsNoThread(t *testing.T) {
	t.Parallel()
	needRoot(t, "run_as")
	wait.Closed(t, time.Minute, locked(func() {
		s, who := &shim{setup: setup{Layer: Group}}, &identity{UID: 65534, GID: 65534}
		thread, ran := unix.Gettid(), false
		s.asUser(who, func() {
			ran = true
			if unix.Gettid() != thread || unix.Geteuid() != who.UID || unix.Getegid() != who.GID {
				t.Errorf("thread %d, user %d:%d; want thread %d, user %d:%d", unix.Gettid(), unix.Geteuid(), unix.Getegid(), thread, who.UID, who.GID)
			}
		})
		if !ran || unix.Geteuid() != 0 || unix.Getegid() != 0 {
			t.Errorf("ran %t, and goes on as %d:%d", ran, unix.Geteuid(), unix.Getegid())
		}
	}), "it does not end")
}

// locked runs f on a thread of its own, and closes the channel when it has returned.
func locked(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so that nothing else runs on the thread
		f()
	}()
	return done
}

func TestRunAsUserDiesWithTheRound(t *testing.T) {
	t.Parallel()
	needRoot(t, "run_as")
	for _, layer := range layers {
		s := open(t, Options{Want: layer, RunAs: "nobody", Rlimits: map[string]uint64{"core": 0}, Name: t.Name() + string(layer)})
		m := newMarked(t, family+`exec sleep 300`)
		m.dir = public(t, family+`exec sleep 300`)
		b := begin(t, s, m.program())
		m.awaitReady(t)
		s.Kill()
		b.wait(t)
		if b.err != nil || b.result.Cause != Killed {
			t.Errorf("got %+v, %v", b.result, b.err)
		}
		m.expectNone(t, 0)
	}
}

func TestWrapper(t *testing.T) {
	t.Parallel()
	for _, limits := range []map[string]uint64{nil, {"core": 0}} {
		s := open(t, Options{Wrapper: []string{"nice", "-n", "19"}, Rlimits: limits, Name: t.Name() + cause(limits)})
		_, text := run(t, s, Program{Dir: script(t, `nice; printf '%s|' "$@"`), Args: []string{"", "a b"}})
		if text != "19\n|a b|" { // there is no higher, however nice the tests are
			t.Errorf("got %q", text)
		}
	}
}

func TestMemoryMax(t *testing.T) {
	t.Parallel()
	needRoot(t, "memory_max")
	const most = 40 << 20
	for _, layer := range layers {
		s := open(t, Options{Want: layer, MemoryMax: most, Name: t.Name() + string(layer)})
		small, text := run(t, s, Program{Dir: script(t, `head -c 8000000 /dev/zero | tail -c 8000000 | wc -c`)})
		if small.OutOfMemory || text != "8000000\n" || small.MaxMemory < 8e6 || small.MaxMemory > most {
			t.Errorf("%s: got %+v and %q", layer, small, text)
		}
		big, _ := run(t, s, Program{Dir: script(t, `x=$(head -c 100000000 /dev/zero | tr '\0' x)`)})
		if !big.OutOfMemory || big.Signal != syscall.SIGKILL || big.Cause != Ended || big.MaxMemory > most {
			t.Errorf("%s: got %+v", layer, big)
		}
		again, _ := run(t, s, Program{Dir: script(t, `:`)})
		if again.OutOfMemory || again.ExitCode != 0 || again.MaxMemory >= 30<<20 {
			t.Errorf("%s, the round after: got %+v", layer, again)
		}
	}
}

func TestPidsMaxHoldsAForkBomb(t *testing.T) {
	t.Parallel()
	needRoot(t, "pids_max")
	for _, layer := range layers {
		s := open(t, Options{Want: layer, PidsMax: 30, Name: t.Name() + string(layer)})
		m := newMarked(t, `echo > ready; bomb() { bomb | bomb & }; (bomb) 2>/dev/null & exec sleep 300`) // a shell that cannot fork ends
		b := begin(t, s, m.program())
		m.awaitReady(t)
		b.cancel()
		b.wait(t)
		if b.err != nil || b.result.Cause != Cancelled {
			t.Errorf("%s: got %+v, %v", layer, b.result, b.err)
		}
		m.expectNone(t, 0)
		if r, text := run(t, s, Program{Dir: script(t, `echo fine`)}); text != "fine\n" {
			t.Errorf("%s, the round after: %+v, %q", layer, r, text)
		}
	}
}
