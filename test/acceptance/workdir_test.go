package acceptance

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// scribbler writes its number to a file of its directory and to one of the program's, and
// reads both a moment later. It says how many files it found there. If it is told where
// programs are, it tries to change its own for all others.
const scribbler = `#!/bin/sh
n=$(ls | wc -l)
echo "$1" > out.dat; echo "$1" >> sub/data
for v in ${2:+"$2"/p/*}; do (echo spoilt >> "$v/run.sh") || (echo spoilt > "$v/new"); done 2>/dev/null
sleep 0.02
echo $n $(cat out.dat sub/data) $(stat -f -c %T . | grep overlay)
`

// wantReturned compares the files that a task has returned.
func wantReturned(t *testing.T, w *world, header *tasks.TaskHeader, want map[string]string) {
	t.Helper()
	var packed bytes.Buffer
	files, got := task.Decode(header.ID, header.Fields).Last().Files, map[string]string{}
	err := w.Store.Files(t.Context(), files.SHA256, &packed)
	if err == nil {
		err = fetch.UnpackFiles(t.Context(), &packed, func(name string, _ fs.FileMode, _ int64, content io.Reader) error {
			text, err := io.ReadAll(content)
			got[name] = string(text)
			return err
		})
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("task %d has returned %q, %v, want %q", header.ID, got, err, want)
	}
}

// Of 200 tasks, 8 at a time, each writes and reads files of its working directory: all read
// their own and return their own, and nobody changes the program where there are mount namespaces. Programs are small, so that a slot keeps its copy,
// and large, shown by an overlay where that can be mounted; root and an ordinary user run
// them, and root as another user.
func TestEachRoundHasItsDirectory(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	for name, c := range map[string]struct {
		files int // of the program, beside run.sh and sub/data
		user  bool
		root  bool // needs it
		set   []string
	}{
		"small":               {0, false, false, nil},
		"small by user":       {0, true, false, nil},
		"small as another":    {0, false, true, []string{"run_as=nobody"}},
		"small, no namespace": {0, true, false, []string{"containment=group"}},
		"overlay":             {40, false, false, nil},
		"overlay by user":     {40, true, false, nil},
		"copies":              {40, true, false, []string{"containment=group"}},
		"copies as another":   {40, false, true, []string{"run_as=nobody"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.root {
				needRoot(t, "run programs as another user")
			}
			w := worldOn(t, reachable(t, srv))
			entries := []entry{{name: "run.sh", body: scribbler, mode: 0o755}, {name: "sub/data", body: "0\n", mode: 0o644}}
			for i := range c.files {
				entries = append(entries, entry{name: fmt.Sprintf("f%d", i), body: "x", mode: 0o644})
			}
			source := w.file(t, "p.tar", string(tarOf(t, entries...)), 0o644)
			programs := w.own(t, "programs")
			specs := make([]task.Spec, 200)
			for i := range specs {
				specs[i] = task.Spec{Program: "p", Source: "rsync:" + source, Argv: []string{fmt.Sprint(i)}, Return: []string{"**"}, ReturnOn: task.ReturnOnSuccess}
				if !slices.Contains(c.set, "containment=group") {
					specs[i].Argv = append(specs[i].Argv, programs)
				}
			}
			ids := w.open(t, specs...)
			cmd := &exec.Cmd{Path: program(t, "tdf-worker"), Dir: w.own(t, "w")}
			cmd.Args = append([]string{"tdf-worker"}, w.workerArgs("w", append(c.set, "slots=8", "program_dir="+programs)...)...)
			if c.user {
				w.asUser(t, cmd)
			}
			w.start(t, cmd)
			for i, id := range ids {
				got := w.await(t, id, sm.Executed)
				want := fmt.Sprintf("%d %d 0 %d", c.files+2, i, i)
				if name == "overlay" && os.Geteuid() == 0 {
					want += " overlayfs"
				}
				out := strings.TrimSuffix(last(got, "output"), "\n")
				if name == "overlay by user" { // who may not be able to mount one
					out = strings.TrimSuffix(out, " overlayfs")
				}
				if out != want || last(got, "error") != "" {
					t.Errorf("task %d: %q, error %q, want %q", id, out, last(got, "error"), want)
				}
				wantReturned(t, w, got, map[string]string{"out.dat": fmt.Sprintln(i), "sub/data": fmt.Sprintf("0\n%d\n", i)})
			}
			versions, err := filepath.Glob(filepath.Join(programs, "p", "*"))
			if err != nil || len(versions) != 1 {
				t.Fatalf("versions %v, %v", versions, err)
			}
			text, err := os.ReadFile(filepath.Join(versions[0], "run.sh"))
			if err != nil || string(text) != scribbler {
				t.Errorf("the program is %q, %v", text, err)
			}
			if _, err := os.Lstat(filepath.Join(versions[0], "new")); !os.IsNotExist(err) {
				t.Errorf("a file was added to the program: %v", err)
			}
		})
	}
}

// After its shim was killed, whose mounts are gone with it, a slot shows the next round its
// program as before, and leaves no directory behind.
func TestOverlayOfALostShim(t *testing.T) {
	t.Parallel()
	needRoot(t, "mount an overlay for certain")
	w := newWorld(t, "slots=1")
	entries := []entry{{name: "run.sh", body: "#!/bin/sh\nls | wc -l\n", mode: 0o755}}
	for i := range 40 {
		entries = append(entries, entry{name: fmt.Sprintf("f%d", i), body: "x", mode: 0o644})
	}
	spec := task.Spec{Program: "p", Source: "rsync:" + w.file(t, "p.tar", string(tarOf(t, entries...)), 0o644)}
	d := w.worker(t, "w")
	run := func() {
		t.Helper()
		checkFields(t, w.await(t, w.open(t, spec)[0], sm.Executed), map[string]string{"0:output": "41\n", "0:error": ""})
	}
	run()
	for _, pid := range shimsOf(t, d) {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		wait.Eventually(t, patience, func() bool { return unix.Kill(pid, 0) != nil || zombie(pid) }, "shim %d does not die", pid)
	}
	run()
	run()
	wait.Eventually(t, patience, func() bool { return len(w.privates(t)) == 0 }, "directories are left: %v", late(func() string {
		return fmt.Sprint(w.privates(t))
	}))
}
