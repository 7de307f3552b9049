package worker

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func returnTo(to string) func(*task.Definition) {
	return func(d *task.Definition) { storetest.Set(d, "return_to", to) }
}

// delivered are the files below a directory, with what they hold.
func delivered(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		found[rel] = string(text)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

func wantDelivered(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if got := delivered(t, dir); !maps.Equal(got, want) {
		t.Errorf("%s has %q, want %q", dir, got, want)
	}
}

// privates are the names in the directory of private directories.
func (r *running) privates(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(r.privateDir())
	if err != nil {
		t.Error(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "return.") {
			names = append(names, e.Name())
		}
	}
	return names
}

// Each round of each task has a place of its own at the destination, and its record says what is there.
func TestReturnTo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := t.TempDir()
	to := returnTo("file:" + dir)
	r := s.start(t)
	again := s.open(t, s.script(t, "again", `echo $TDF_ROUND > x; echo y > y; [ $TDF_ROUND = 1 ]`), returning("end", "x"), to,
		func(d *task.Definition) { storetest.Set(d, "max_fails", "1") })
	got := s.settle(t, again, sm.Succeeded)
	other := s.await(t, s.open(t, s.script(t, "p", "echo other > x"), returning("", "x"), to), sm.Executed)
	wantDelivered(t, dir, map[string]string{"1.0/x": "0\n", "1.1/x": "1\n", "2.0/x": "other\n"})
	for _, round := range task.Decode(got.ID, got.Fields).Rounds {
		want := task.Files{Bytes: 2, Count: 1, To: task.ReturnedTo("file:"+dir, again, round.Number)}
		if round.Files != want {
			t.Errorf("round %d: %+v, want %+v", round.Number, round.Files, want)
		}
	}
	checkFields(t, other, map[string]string{"0:files": "- 6 1", "0:error": ""})
	if left := r.privates(t); left != nil {
		t.Errorf("%v are left", left)
	}
}

// What a round writes beyond its record goes to the same destination, in full, also for a task that returns no files and for a round
// that fails.
func TestReturnToHasTheOutput(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir, remote := t.TempDir(), t.TempDir()
	s.start(t, setting(t, "output_limit=1KiB", "output_max=4KiB"))
	full := func(d *task.Definition) { storetest.Set(d, "on_cut", "fail", "fail_on", "exit") }
	zeros := func(n int) string { return strings.Repeat("\x00", n) }
	tail := zeros(4096) + capture.Marker(5000-4096-512) + zeros(512)
	for i, c := range []struct {
		program, to string
		with        func(*task.Definition)
		want        map[string]string
		fields      map[string]string
	}{
		{"head -c 2000 /dev/zero; head -c 3000 /dev/zero >&2", dir, func(*task.Definition) {},
			map[string]string{"1.0.logs/output": zeros(2000), "1.0.logs/error": zeros(3000)}, map[string]string{"0:whole": "- 5000 2", "cut": "-", "0:error": ""}},
		{"echo x > output; head -c 2000 /dev/zero", dir, returning("", "output"),
			map[string]string{"2.0.logs/output": zeros(2000), "2.0/output": "x\n"}, map[string]string{"0:whole": "- 2000 1", "0:files": "- 2 1"}},
		{"echo x > x; head -c 2000 /dev/zero; exit 3", dir, returning("", "x"),
			map[string]string{"3.0.logs/output": zeros(2000)}, map[string]string{"0:error": "exit status 3", "0:files": "-"}},
		{"head -c 5000 /dev/zero", dir, func(*task.Definition) {},
			map[string]string{"4.0.logs/output.cut": tail}, map[string]string{"cut": "0 output"}},
		{"head -c 1000 /dev/zero", dir, func(*task.Definition) {}, map[string]string{}, map[string]string{"0:whole": "-"}},
		{"head -c 2000 /dev/zero", "rsync://" + hosttest.RsyncDaemon(t, remote) + "/w", func(*task.Definition) {},
			map[string]string{"6.0.logs/output": zeros(2000)}, map[string]string{"0:whole": "- 2000 1", "cut": "-"}},
		{"head -c 2000 /dev/zero", dir + "/none", func(*task.Definition) {}, map[string]string{}, map[string]string{"0:whole": "-", "cut": "0 output"}},
	} {
		id := s.open(t, s.script(t, "p", c.program), returnTo(c.to), full, c.with)
		got := s.await(t, id, sm.Executed)
		checkFields(t, got, c.fields)
		there := delivered(t, dir)
		maps.Copy(there, delivered(t, remote))
		maps.DeleteFunc(there, func(name, _ string) bool { return !strings.HasPrefix(name, strconv.Itoa(i+1)) })
		if !maps.Equal(there, c.want) {
			t.Errorf("%s: there are %.200q, want %.200q", c.program, there, c.want)
		}
		if strings.HasSuffix(c.to, "none") {
			checkContains(t, "log", got.Fields["log"], "not all of output is kept: destination file:"+dir+"/none: ", "make the directory, at each worker")
			checkContains(t, "error", got.Fields["0:error"], "on_cut is fail", "see the log of the task")
		}
	}
	if n, err := s.Store.Redis.Exists(t.Context(), s.Namespace+":files").Result(); n != 0 || err != nil {
		t.Errorf("Redis has some of it: %d, %v", n, err)
	}
}

// What is not delivered is no success, and no fault of the program.
func TestReturnToFails(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := t.TempDir()
	s.start(t)
	for _, c := range []struct {
		program, to string
		class       sm.Class
		err         string
	}{
		{"echo x > x", "file:" + dir + "/none", sm.ClassInfrastructure, "could not return files: destination file:" + dir + "/none: "},
		{"echo x > x", "rsync://127.0.0.1:" + "1/m", sm.ClassInfrastructure, "could not return files: destination rsync://127.0.0.1:1/m: rsync: "},
		{"echo y > y", "file:" + dir, sm.ClassProgram, "return: no file of the round matches x"},
		{"truncate -s 600M x", "file:" + dir, sm.ClassProgram, "a file is larger than 536870912 bytes in 'x'; return less, or raise [worker] fetch_max_file_bytes"},
		{"echo bad >&2; echo x > x", "file:" + dir, sm.ClassProgram, "bad"},
	} {
		got := s.await(t, s.open(t, s.script(t, "p", c.program), returning("", "x"), returnTo(c.to)), sm.Executed)
		checkFields(t, got, map[string]string{"0:class": string(c.class), "0:files": "-", "0:exit_code": "0"})
		checkContains(t, "error", got.Fields["0:error"], c.err)
	}
	wantDelivered(t, dir, map[string]string{})
}

// A directory is written by the user whom the program runs as, and by no other: the worker writes nowhere for a task where its
// program could not.
func TestReturnToAsTheUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to have several users")
	}
	s := newSite(t)
	home, err := os.MkdirTemp("", "return-to-test-") //nolint:usetesting // others cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	owned, roots := filepath.Join(home, "owned"), filepath.Join(home, "roots")
	var uid int
	s.start(t, func(o *options) {
		o.TempDir = home
		if o.container, err = shim.New(shim.Options{Want: shim.Group, Name: s.Namespace, RunAs: "nobody"}); err != nil {
			t.Fatal(err)
		}
		uid, _, _ = o.container.Owner()
	})
	for _, err := range []error{os.Chmod(home, 0o755), os.Mkdir(owned, 0o755), os.Chown(owned, uid, -1), os.Mkdir(roots, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p := func(d *task.Definition) {
		storetest.Set(d, "program", "sh", "source", "command:sh", "argv", `["-c","echo x > x"]`, "fail_on", "exit")
	}
	got := s.await(t, s.open(t, p, returning("", "x"), returnTo(owned)), sm.Executed)
	checkFields(t, got, map[string]string{"0:error": ""})
	wantDelivered(t, owned, map[string]string{"1.0/x": "x\n"})
	remote := t.TempDir() // rsync sends from where the user cannot write
	got = s.await(t, s.open(t, p, returning("", "x"), returnTo("rsync://"+hosttest.RsyncDaemon(t, remote)+"/w")), sm.Executed)
	checkFields(t, got, map[string]string{"0:error": ""})
	wantDelivered(t, remote, map[string]string{"2.0/x": "x\n"})
	got = s.await(t, s.open(t, p, returning("", "x"), returnTo(roots)), sm.Executed)
	checkFields(t, got, map[string]string{"0:class": "infrastructure", "0:files": "-"})
	checkContains(t, "error", got.Fields["0:error"], "permission denied", "written as the user that programs run as")
	wantDelivered(t, roots, map[string]string{})
}

// What stops a round stops the transfer of its files, and nothing of it stays.
func TestReturnToIsStopped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timeout string
		stop    func(t *testing.T, s *site, r *running, id int64)
		state   sm.State
		round   int
	}{
		"timeout": {"5", func(*testing.T, *site, *running, int64) {}, sm.TimedOut, 0},
		"cancel": {"1000", func(t *testing.T, s *site, _ *running, id int64) {
			t.Helper()
			s.askStop(t, id)
		}, sm.Terminated, 0},
		"drain": {"1000", func(t *testing.T, _ *site, r *running, _ int64) {
			t.Helper()
			r.stop(t)
		}, sm.Open, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			id := s.open(t, s.script(t, "p", "echo x > x"), returning("", "x"), returnTo("rsync:host:dir"),
				func(d *task.Definition) { storetest.Set(d, "timeout", c.timeout) })
			begun, rsync := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "rsync")
			hosttest.WriteProgram(t, rsync, `#!/bin/sh
case "$*" in *--delay-updates*) echo $$ > `+begun+`; exec sleep 1000;; esac
exit 23
`, 0o755)
			r := s.start(t, func(o *options) {
				fo := fetch.DefaultOptions()
				fo.Dir, fo.RsyncPath = s.programs, rsync
				f, err := fetch.New(fo)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = f.Close() })
				o.Programs = f
			})
			awaitFile(t, begun)
			if staged := r.privates(t); !slices.Equal(staged, []string{"return.1.0"}) {
				t.Errorf("on their way are %v", staged)
			}
			c.stop(t, s, r, id)
			got := s.settle(t, id, c.state)
			if got.Round != c.round || got.Fields["0:files"] != "" {
				t.Errorf("round %d, files %q", got.Round, got.Fields["0:files"])
			}
			if name != "drain" { // whose end has removed the directory
				wait.Eventually(t, patience, func() bool { return r.privates(t) == nil }, "something stays on its way")
			}
		})
	}
}

// What a worker has left half at a destination when it was killed goes when it starts again.
func TestReturnToAfterAKill(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir, temp := t.TempDir(), t.TempDir()
	inTemp := func(o *options) { o.TempDir = temp }
	first := s.start(t, inTemp)
	wait.Closed(t, patience, first.ready, "the worker does not start")
	home := first.privateDir()
	f, ok := first.opts.Programs.(*fetch.Fetcher)
	if !ok {
		t.Fatal("no fetcher")
	}
	first.stop(t)
	wrote := t.TempDir()
	touch(t, filepath.Join(wrote, "x"))
	if err := os.MkdirAll(home, 0o711); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Collect(t.Context(), fetch.Return{
		To: "file:" + dir, Task: 5, Dir: wrote, Patterns: []string{"x"}, Scratch: home, As: func(f func() error) error { return f() },
	}); err != nil {
		t.Fatal(err)
	}
	wantDelivered(t, dir, map[string]string{".tdf-5.0/x": "x"})
	second := s.start(t, inTemp)
	wait.Closed(t, patience, second.ready, "the worker does not start again")
	wantDelivered(t, dir, map[string]string{})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 || second.privates(t) != nil {
		t.Errorf("%v, %v and %v are left", entries, err, second.privates(t))
	}
}
