package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What a program mounts is gone with its round: neither the next round of the slot
// nor the host sees it.
func TestMountsEndWithTheRound(t *testing.T) {
	t.Parallel()
	needRoot(t, "mount")
	eachLayer(t, func(t *testing.T, s *Slot) {
		dir := script(t, `[ "$1" = look ] || mount --bind other victim; cat victim`)
		victim := filepath.Join(dir, "victim")
		for name, content := range map[string]string{victim: "mine", filepath.Join(dir, "other"): "other"} {
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { _ = unix.Unmount(victim, unix.MNT_DETACH) })
		if _, text := run(t, s, Program{Dir: dir}); text != "other" {
			t.Fatalf("the program could not mount: %q", text)
		}
		if text, err := os.ReadFile(victim); string(text) != "mine" || err != nil {
			t.Errorf("the host sees %q, %v", text, err)
		}
		if _, text := run(t, s, Program{Dir: dir, Args: []string{"look"}}); text != "mine" {
			t.Errorf("the next round sees %q", text)
		}
	})
}

// A root program that leaves its control group, clears its environment, has no
// parent any more and kills its shim does not outlive its round, whichever
// containment is asked for, unless that is group.
func TestNothingEscapesByLeavingItsCgroup(t *testing.T) {
	t.Parallel()
	needRoot(t, "leave a control group")
	for _, want := range []Layer{"", PIDNamespace, Cgroup} {
		t.Run("want "+string(want), func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{Want: want})
			name := fmt.Sprintf("31%d.%d", os.Getpid(), s.PID())
			t.Cleanup(func() {
				for _, pid := range sleepersOf(name) { // a safety net for a failing test
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			})
			dir := script(t, `(env -i setsid sh -c 'echo $$ > '"$1"'/cgroup.procs; echo > escaped; exec sleep '"$2" >/dev/null 2>&1 &)
until [ -e escaped ]; do sleep 0.01; done
kill -9 $PPID; exit 3`)
			r, text := run(t, s, Program{Dir: dir, Args: []string{unified(t), name}})
			if r.ExitCode != 3 || text != "" {
				t.Errorf("got %+v, %q", r, text)
			}
			if n := sleepers(name); n != 0 {
				t.Errorf("%d have escaped", n)
			}
		})
	}
}
