package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// mounting mounts a directory of the host in its private directory in every way there
// is, leaves a link where a mount was, and dies.
//
//nolint:dupword // the file system has the name of its device
const mounting = `cd "$TDF_WORKDIR" && mkdir a b "c d" e && : > file || exit 1
mount --bind "$1" a
mount -t tmpfs tmpfs b && mkdir b/in && mount --bind "$1" b/in
mount --bind "$1" "c d" && mount -t tmpfs tmpfs "c d"
mount --bind "$1/canary" file
mount --bind "$1" e && mv e f && ln -s "$1" e
[ $# = 1 ] || mount --bind "$TDF_WORKDIR" "$TDF_WORKDIR"
until [ "$3" != wait ]; do sleep 1; done
kill -9 $$`

// moving takes a mount of the host's into its private directory, and dies.
const moving = `mkdir "$TDF_WORKDIR/m" && mount --move "$1" "$TDF_WORKDIR/m" && kill -9 $$`

// A program that is killed before it unmounts what it has mounted in its private
// directory costs the host no file.
func TestMountsOfPrograms(t *testing.T) {
	t.Parallel()
	for _, layer := range []string{"group", "cgroup"} {
		t.Run(layer, func(t *testing.T) {
			t.Parallel()
			needRoot(t, "mount something")
			w, _, _ := mountable(t, layer)
			killed := w.script(t, "killed", mounting)
			w.diesMounted(t, killed)
		})
	}
}

// A program that mounts where the worker does, outside of its own mount namespace, costs
// the host no file either: what it mounted is unmounted, what was mounted before keeps the
// directory there, and so does everything at the next start of the worker.
func TestMountsOfTheWorker(t *testing.T) {
	t.Parallel()
	needRoot(t, "mount something")
	w, inside, first := mountable(t, "group")
	outside := fmt.Sprintf(`exec nsenter --mount=/proc/%d/ns/mnt sh -c '%%s' sh "$@"`, first.Process.Pid)
	killed := w.script(t, "killed", fmt.Sprintf(outside, mounting))
	w.diesMounted(t, killed)

	elsewhere := w.own(t, "elsewhere")
	inside(t, "mount", "-t", "tmpfs", "tmpfs", elsewhere)
	inside(t, "touch", filepath.Join(elsewhere, "precious"))
	moves := w.script(t, "moves", fmt.Sprintf(outside, moving))
	moves.Input = elsewhere
	w.await(t, w.open(t, moves)[0], sm.Executed)
	first.Says(t, "could not remove the private directory of task 3; leaving it")
	first.Says(t, "something is mounted at '"+w.private)
	precious := "/proc/" + fmt.Sprint(first.Process.Pid) + "/root" + w.privates(t)[0] + "/m/precious"
	w.there(t, precious)

	killed.Input = w.canary() + " top wait"
	w.await(t, w.open(t, killed)[0], sm.Running)
	wait.Eventually(t, patience, func() bool { return len(mountsOf(t, first)) >= 8 }, "mounted is %v", late(func() string {
		return fmt.Sprint(mountsOf(t, first))
	}))
	first.Killed = true
	_ = first.Process.Kill()
	<-first.Done
	second := inside(t, append([]string{program(t, "tdf-worker")}, w.workerArgs("w")...)...)
	second.Says(t, "could not remove a left-over private directory; leaving it")
	second.Says(t, `"message":"registered"`)
	w.there(t, filepath.Join(w.canary(), "canary"))
	w.there(t, strings.Replace(precious, fmt.Sprint(first.Process.Pid), fmt.Sprint(second.Process.Pid), 1))
	left, err := filepath.Glob(filepath.Join(w.private, "tdf.*", "*"))
	if err != nil || len(left) < 2 { // from here, one of them is empty
		t.Errorf("left are %v, %v, want both directories with mounts", left, err)
	}
}

// mountable is a world in a mount namespace of its own, what starts commands there, and a worker.
func mountable(t *testing.T, layer string) (*world, func(*testing.T, ...string) *daemon, *daemon) {
	t.Helper()
	w := newWorld(t, "slots=1", "containment="+layer, "require_containment=true")
	inside := w.mountNamespace(t)
	w.file(t, "host/canary", "", 0o644)
	return w, inside, inside(t, append([]string{program(t, "tdf-worker")}, w.workerArgs("w")...)...)
}

// canary is the directory of the host that programs mount.
func (w *world) canary() string { return filepath.Join(w.dir, "host") }

// diesMounted runs tasks 1 and 2, and checks that the host's file is there when their directories are gone.
func (w *world) diesMounted(t *testing.T, killed task.Spec) {
	t.Helper()
	for _, killed.Input = range []string{w.canary(), w.canary() + " top"} {
		checkFields(t, w.await(t, w.open(t, killed)[0], sm.Executed), map[string]string{"0:signal": "killed", "0:error": "*"})
		wait.Eventually(t, patience, func() bool {
			w.there(t, filepath.Join(w.canary(), "canary"))
			return len(w.privates(t)) == 0
		}, "left is %v", late(func() string { return fmt.Sprint(w.privates(t)) }))
	}
}

func (w *world) there(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Lstat(file); err != nil {
		t.Fatalf("the host's file is gone: %v", err)
	}
}

// mountNamespace makes one for as long as the test runs, and returns what starts
// commands in it.
func (w *world) mountNamespace(t *testing.T) func(t *testing.T, command ...string) *daemon {
	t.Helper()
	holder := exec.CommandContext(t.Context(), "cat")
	holder.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	hold, err := holder.StdinPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = hold.Close()
		_ = holder.Wait()
	})
	space := fmt.Sprintf("--mount=/proc/%d/ns/mnt", holder.Process.Pid)
	return func(t *testing.T, command ...string) *daemon {
		t.Helper()
		if !filepath.IsAbs(command[0]) {
			if out, err := exec.CommandContext(t.Context(), "nsenter", append([]string{space}, command...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v: %s", command, err, out)
			}
			return nil
		}
		cmd := exec.Command("nsenter", append([]string{space, "sh", "-c", `cd "$0" && exec "$@"`, w.own(t, "w")}, command...)...)
		return w.start(t, cmd)
	}
}

// mountsOf are the lines about mounts in private directories.
func mountsOf(t *testing.T, d *daemon) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", d.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "/private/tdf.") {
			lines = append(lines, line)
		}
	}
	return lines
}
