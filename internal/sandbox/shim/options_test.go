package shim

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		options Options
		key     string
		text    string
	}{
		"layer":          {Options{Want: "jail"}, "containment", "pidns"},
		"user":           {Options{RunAs: "no-such-user"}, "run_as", "no-such-user"},
		"group":          {Options{RunAs: "nobody:no-such-group"}, "run_as", "no-such-group"},
		"number alone":   {Options{RunAs: "54321"}, "run_as", "number:number"},
		"rlimit":         {Options{Rlimits: map[string]uint64{"beer": 1}}, "rlimits", "nofile"},
		"wrapper":        {Options{Wrapper: []string{"no-such-wrapper", "-x"}}, "wrapper", "no-such-wrapper -x"},
		"no name":        {Options{MemoryMax: 1 << 20}, "memory_max", "name"},
		"no name either": {Options{PidsMax: 100, Want: Group}, "pids_max", "name"},
	}
	if mayRaise() {
		t.Log("hard limits can be raised here, so the refusal to do so is not tried")
	} else {
		cases["hard limit"] = struct {
			options Options
			key     string
			text    string
		}{Options{Rlimits: map[string]uint64{"nofile": 1 << 40}}, "rlimits", "hard limit"}
	}
	if os.Geteuid() != 0 {
		cases["not root"] = struct {
			options Options
			key     string
			text    string
		}{Options{RunAs: "daemon"}, "run_as", "root"}
	}
	for name, c := range cases {
		_, err := New(c.options)
		var option *OptionError
		if !errors.As(err, &option) || option.Key != c.key || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestBestLayerIsChosen(t *testing.T) {
	t.Parallel()
	c := container(t, Options{})
	if c.way.layer != PIDNamespace || c.Describe() != "pidns" || len(c.missing) != 0 {
		t.Errorf("got %q, %q, %q", c.way.layer, c.Describe(), c.missing)
	}
	if uid, gid, other := c.Owner(); uid != os.Geteuid() || gid != os.Getegid() || other {
		t.Errorf("owner is %d:%d", uid, gid)
	}
	for layer, want := range map[Layer]string{PIDNamespace: "pidns", Cgroup: "pidns+cgroup", Group: "group"} {
		if c := container(t, Options{Want: layer, Name: t.Name() + string(layer)}); c.Describe() != want || len(c.missing) != 0 {
			t.Errorf("got %q, %q, want %q", c.Describe(), c.missing, want)
		}
	}
}

// Without a name there is no control group, so the next best layer is taken, or
// refused.
func TestWeakerLayer(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	c, err := New(Options{Want: Cgroup, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil || c.way.layer != PIDNamespace || len(c.missing) != 1 || !strings.Contains(c.missing[0], "cgroup: ") {
		t.Errorf("got %v, %v", c, err)
	}
	if !strings.Contains(log.String(), "cgroup: ") {
		t.Errorf("logged %q", log.String())
	}
	_, err = New(Options{Want: Cgroup, Require: true})
	var option *OptionError
	if !errors.As(err, &option) || option.Key != "containment" || option.Value != "cgroup" {
		t.Errorf("got %v", err)
	}
}

func TestDoneContextStartsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := script(t, `echo > started`)
	r, err := open(t, Options{}).Run(ctx, Program{Dir: dir})
	if err != nil || r.Started || r.Cause != Cancelled || r.ExitCode != -1 {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("it was started")
	}
}

// A round that begins after the deadline is not executed; a later deadline, or
// none, lets it.
func TestDeadlineHoldsForLaterRounds(t *testing.T) {
	t.Parallel()
	eachLayer(t, func(t *testing.T, s *Slot) {
		p := Program{Dir: script(t, `exit 3`), Env: []string{path}}
		for _, at := range []Instant{Now() - 1, Now().Add(time.Hour), 1, 0} {
			if err := s.Extend(at); err != nil {
				t.Fatal(err)
			}
			r, err := s.Run(context.Background(), p)
			over := at != 0 && at < Now()
			if err != nil || r.Started == over || over && r.Cause != LeaseOver || !over && r.ExitCode != 3 {
				t.Errorf("at %v: got %+v, %v", at, r, err)
			}
		}
	})
}

func TestProgramMayEndOrderlyInItsGrace(t *testing.T) {
	t.Parallel()
	eachLayer(t, func(t *testing.T, s *Slot) {
		m := newMarked(t, `trap 'echo > saved; exit 3' TERM; echo > ready; while :; do sleep 0.01; done`)
		p := m.program()
		p.Grace = time.Hour
		b := begin(t, s, p)
		m.awaitReady(t)
		b.cancel()
		b.wait(t)
		if b.err != nil || b.result.Cause != Cancelled || b.result.ExitCode != 3 {
			t.Errorf("got %+v, %v", b.result, b.err)
		}
		if _, err := os.Stat(filepath.Join(m.dir, "saved")); err != nil {
			t.Error(err)
		}
	})
}

func TestLostSlotStaysLost(t *testing.T) {
	t.Parallel()
	eachLayer(t, func(t *testing.T, s *Slot) {
		_ = unix.Kill(s.PID(), unix.SIGKILL)
		for range 2 {
			_, err := s.Run(context.Background(), Program{Dir: script(t, ":")})
			if !errors.Is(err, ErrShimLost) {
				t.Errorf("got %v", err)
			}
		}
		if err := s.Extend(Now()); !errors.Is(err, ErrShimLost) {
			t.Errorf("Extend: %v", err)
		}
		s.Kill()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		again := start(t, s.container)
		if r, err := again.Run(context.Background(), Program{Dir: script(t, "exit 4")}); r.ExitCode != 4 || err != nil {
			t.Errorf("the next one: %+v, %v", r, err)
		}
	})
}

// Programs of the same name that an earlier incarnation left are swept, those of
// this one, of one that is alive, and of other names are not.
func TestSweep(t *testing.T) {
	t.Parallel()
	for _, layer := range []Layer{bareCgroup, Group} { // with pidns nothing is left
		t.Run(string(layer), func(t *testing.T) {
			t.Parallel()
			m := newMarked(t, family+`exec sleep 300`)
			worker := startWorker(t, m, string(layer))
			m.awaitReady(t)
			mine := container(t, Options{Want: layer, Name: m.mark})
			other := start(t, container(t, Options{Want: layer, Name: m.mark + "2"}))
			n := newMarked(t, `echo > ready; exec sleep 300`)
			begin(t, start(t, mine), n.program())
			n.awaitReady(t)
			o := newMarked(t, `echo > ready; exec sleep 300`)
			begin(t, other, o.program())
			o.awaitReady(t)
			left := len(m.alive())
			if killed, err := mine.Sweep(); killed != 0 || err != nil || len(m.alive()) != left {
				t.Errorf("of one that is alive: %d, %v, left %d of %d", killed, err, len(m.alive()), left)
			}
			killAtOnce(t, worker)
			if killed, err := mine.Sweep(); err != nil || killed < 1 {
				t.Errorf("%d killed of %d, %v", killed, left, err)
			}
			m.expectNone(t, 0)
			if len(n.alive()) != 1 || len(o.alive()) != 1 {
				t.Error("a program of its own, or of another name, is gone")
			}
		})
	}
}

// killAtOnce kills a worker and its shim so that neither sees the other die.
func killAtOnce(t *testing.T, worker *exec.Cmd) {
	t.Helper()
	_ = worker.Process.Signal(syscall.SIGSTOP)
	for _, pid := range processes() {
		line, _ := os.ReadFile(filepath.Join("/proc", itoa(pid), "cmdline"))
		if parentOf(pid) == worker.Process.Pid && strings.HasPrefix(string(line), shimName) {
			_ = unix.Kill(pid, unix.SIGKILL)
			wait.Eventually(t, within, func() bool { return parentOf(pid) == 0 }, "the shim is killed")
		}
	}
	_ = worker.Process.Kill()
	_ = worker.Wait()
}

// A concealed process can still start shims, and shows nothing to its user.
func TestConceal(t *testing.T) {
	t.Parallel()
	for _, layer := range layers {
		m := newMarked(t, `echo > ready; exec sleep 300`)
		worker := startWorker(t, m, string(layer)+",  conceal")
		m.awaitReady(t)
		dumpable, err := os.ReadFile(filepath.Join("/proc", itoa(worker.Process.Pid), "environ"))
		if os.Geteuid() != 0 && !errors.Is(err, syscall.EACCES) && !errors.Is(err, syscall.EPERM) {
			t.Errorf("%s: environment is readable: %d bytes, %v", layer, len(dumpable), err)
		}
		_ = worker.Process.Kill()
		_ = worker.Wait()
		m.expectNone(t, within)
		sweepAfter(t, m, layer)
	}
}
