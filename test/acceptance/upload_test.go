package acceptance

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// A directory goes with the tasks, through Redis and no other server: commands run in a copy of it on workers with empty disks,
// each task with what the directory was when it was submitted.
func TestUpload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=2")
	w.server(t)
	dir := w.own(t, "project")
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	noise := make([]byte, 3<<20) // more than one part, however it is packed
	_, _ = rand.Read(noise)
	write("noise", string(noise), 0o644)
	write("sim", "#!/bin/sh\ntext=$(cat data)\necho \"$1: $text $(cksum <noise)\" | tee data\n", 0o755)
	write("run.sh", "#!/bin/sh\ncat data; echo program \"$1\"\n", 0o755)
	write("data", "first", 0o644)
	sum := w.checksum(t, filepath.Join(dir, "noise"))
	w.manage(t, 0, "submit", "--upload", dir, "--array", "1-20", "--", "./sim", "{}")
	write("data", "second", 0o644)
	w.manage(t, 0, "submit", "--upload", dir, "--array", "1-20", "--", "./sim")
	w.manage(t, 0, "submit", "--upload", dir, "--program", "p", "--", "x")
	w.manage(t, 0, "submit", "--upload", filepath.Join(dir, "sim"), "--", "ls")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		w.worker(t, name, "program_dir="+w.own(t, "empty-"+name))
	}
	w.manage(t, 0, "wait", "all")
	for id, want := range map[int64]string{
		7: "7: first " + sum, 27: "7: second " + sum, 41: "secondprogram x\n", 42: "sim\n",
	} {
		if got := w.hash(t, id)["0:output"]; got != want {
			t.Errorf("task %d wrote %q, want %q", id, got, want)
		}
	}
	first, second := w.hash(t, 7)["0:program_sha256"], w.hash(t, 27)["0:program_sha256"]
	if first == second || !strings.HasSuffix(w.hash(t, 7)["source"], first) {
		t.Errorf("both ran version %s", first)
	}
	w.sound(t)
}

// checksum is what cksum says of a file.
func (w *world) checksum(t *testing.T, name string) string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.CommandContext(t.Context(), "cksum")
	cmd.Stdin = file
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A missing upload fails the round, and the error names its hash.
func TestUploadIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.all(t)
	hash := strings.Repeat("0a", 32)
	w.manage(t, 0, "submit", "--program", "p", "--source", "blob:sha256="+hash, "--max-faults", "0", "--max-fails", "0")
	r := w.archived(t, 1, sm.Failed)
	if text := fmt.Sprint(r.Fields); !strings.Contains(text, hash) || !strings.Contains(text, "no such blob") {
		t.Errorf("it does not say what is missing: %s", text)
	}
}

// Files come back through Redis from workers with disks of their own, all of them. When there is no room for more, the tasks that
// find none fail, and nothing of their files stays.
func TestReturnedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=2")
	w.launch(t, "server", "tdf-server", "server", w.cfg, "--set", "server.blob_limit=1MiB", "--set", "server.blob_quota=2MiB")
	wait.Eventually(t, patience, func() bool { return w.Raw.HExists(t.Context(), w.Key("meta"), "blob_quota").Val() }, "no limit is published")
	for _, name := range []string{"one", "two"} {
		w.worker(t, name, "program_dir="+w.own(t, "empty-"+name))
	}
	const write = `mkdir -p out/sub; for n in $(seq 50); do echo "{} $n" > out/sub/$n.txt; done`
	w.manage(t, 0, "submit", "--wait", "--return", "out", "--array", "1-20", "--", "sh", "-c", write)
	dir := filepath.Join(w.dir, "results")
	w.manage(t, 0, "results", "--dir", dir, "1-20")
	for task := 1; task <= 20; task++ {
		for n := 1; n <= 50; n++ {
			name := filepath.Join(dir, fmt.Sprint(task), "files", "out", "sub", fmt.Sprintf("%d.txt", n))
			if text, err := os.ReadFile(name); string(text) != fmt.Sprintf("%d %d\n", task, n) {
				t.Fatalf("%s: %q, %v", name, text, err)
			}
		}
	}
	w.manage(t, 1, "submit", "--wait", "--return", "noise", "--array", "1-6", "--", "sh", "-c", "head -c 600000 /dev/urandom > noise; : {}")
	kept := 0
	for id := int64(21); id <= 26; id++ {
		got := w.hash(t, id)
		if files := got["0:files"]; files != "" {
			kept++
		} else {
			contains(t, "error", got["0:error"], "the quota of all blobs is 2097152 bytes", "lower file_retention")
		}
	}
	if kept != 3 {
		t.Errorf("%d tasks have returned files of 600000 bytes within 2 MiB, want 3", kept)
	}
	w.manage(t, 1, "submit", "--wait", "--return", "noise", "--", "sh", "-c", "head -c 1100000 /dev/urandom > noise")
	contains(t, "error", w.hash(t, 27)["0:error"], "the limit of one blob is 1048576 bytes")
	w.sound(t)
}

// Two workers return the files of 20 tasks to a directory that they share, and results reads them there. A worker is killed in the middle
// of a transfer by rsync: nothing of it is left when it is there again, and the next round returns its files.
func TestReturnedFilesElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=2")
	w.server(t)
	shared, begun := w.own(t, "shared"), filepath.Join(w.dir, "begun")
	rsync := filepath.Join(w.dir, "rsync")
	hosttest.WriteProgram(t, rsync, `#!/bin/sh
case "$*" in *--delay-updates*) rsync "$@"; [ -e `+begun+` ] || { touch `+begun+`; exec sleep 1000; }; exit;; esac
exec rsync "$@"
`, 0o755)
	workers := map[string]*daemon{}
	for _, name := range []string{"one", "two"} {
		workers[name] = w.worker(t, name, "rsync_path="+rsync)
	}
	w.manage(t, 0, "submit", "--wait", "--return", "out", "--return-to", shared, "--array", "1-20", "--", "sh", "-c", "mkdir out; echo {} > out/n")
	dir := filepath.Join(w.dir, "results")
	w.manage(t, 0, "results", "--dir", dir, "1-20")
	for task := 1; task <= 20; task++ {
		name := filepath.Join(dir, fmt.Sprint(task), "files", "out", "n")
		if text, err := os.ReadFile(name); string(text) != fmt.Sprintln(task) {
			t.Fatalf("%s: %q, %v", name, text, err)
		}
	}
	remote := w.own(t, "remote")
	names := func() (names []string) {
		entries, err := os.ReadDir(remote)
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	w.manage(t, 0, "submit", "--return", "out", "--return-to", "rsync://"+hosttest.RsyncDaemon(t, remote)+"/w", "--", "sh", "-c", "mkdir out; echo 21 > out/n")
	wait.Eventually(t, patience, func() bool {
		_, err := os.Stat(begun)
		return err == nil
	}, "nothing is transferred")
	if got := names(); !slices.Equal(got, []string{"21.0"}) {
		t.Errorf("at the destination are %v", got)
	}
	killed := w.Task(t, 21).Fields["0:worker"]
	w.killAtOnce(t, workers[killed])
	w.worker(t, killed, "rsync_path="+rsync)
	w.manage(t, 0, "wait", "21")
	wait.Eventually(t, patience, func() bool { return slices.Equal(names(), []string{"21.1"}) }, "at the destination are %v", late(func() string {
		return fmt.Sprint(names())
	}))
	if text, err := os.ReadFile(filepath.Join(remote, "21.1", "out", "n")); string(text) != "21\n" {
		t.Errorf("%q, %v", text, err)
	}
	stdout, _ := w.manage(t, 0, "show", "21")
	contains(t, "show", stdout, "files (1, 3 bytes; at rsync://")
	if left, err := filepath.Glob(filepath.Join(w.private, "tdf.*", "return.*")); left != nil || err != nil {
		t.Errorf("%v are left on their way, %v", left, err)
	}
	w.sound(t)
}

// Steps of a plan, commands among them and those that are opened later, run in the directory that they take along, on workers with
// empty disks.
func TestPlanTakesAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=2")
	w.server(t)
	w.file(t, "project/data", "7\n", 0o644)
	w.file(t, "project/sim", "#!/bin/sh\necho $(cat data) $1\n", 0o755)
	w.file(t, "project/run.sh", "#!/bin/sh\necho all \"$@\"\n", 0o755)
	file := w.file(t, "plan.yaml", `defaults: {upload: project}
steps:
  list: {source: command:cat, argv: [data, data]}
  each: {source: command:./sim, foreach: {lines: list}, argv: ["${item}"]}
  report: {program: p, needs: each}
`, 0o644)
	for _, name := range []string{"one", "two"} {
		w.worker(t, name, "program_dir="+w.own(t, "empty-"+name))
	}
	w.manage(t, 0, "plan", "run", "-q", file)
	if got := w.hash(t, w.lastTask(t))["0:output"]; got != "all 7 7 7 7\n" {
		t.Errorf("the report is %q", got)
	}
	w.sound(t)
}

// transfer is a way of bytes that is stopped in the middle.
type transfer struct {
	// submit are the arguments of submit, begun reports whether it is on its way, left names what of it is anywhere.
	submit []string
	begun  func() bool
	left   func() []string
	// files are how many the task returns in the end.
	files int
}

// transfers are those of workers: a download, and files that are returned to Redis, and to a directory.
func (w *world) transfers(t *testing.T) map[string]transfer {
	t.Helper()
	noise := make([]byte, 24<<20)
	_, _ = rand.Read(noise) // never fails
	name := w.file(t, "noise", string(noise), 0o644)
	to := w.own(t, "shared")
	var gets atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		text := "#!/bin/sh\n" + strings.Repeat("# a long script\n", 1000)
		rw.Header().Set("Content-Length", strconv.Itoa(len(text)))
		if gets.Add(1) > 1 {
			_, _ = io.WriteString(rw, text)
			return
		}
		_, _ = io.WriteString(rw, text[:len(text)/2])
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(func() {
		site.CloseClientConnections() // of a worker that is stopped
		site.Close()
	})
	glob := func(pattern string) []string {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Error(err)
		}
		return names
	}
	parts := func() []string { return w.Raw.Keys(t.Context(), w.Key("file:*")).Val() }
	there := func() []string { return slices.Concat(glob(filepath.Join(to, "*")), glob(filepath.Join(to, ".tdf-*"))) }
	return map[string]transfer{
		"download": {
			[]string{"--pin", "off", "--program", "p", "--source", site.URL + "/run.sh"}, func() bool { return gets.Load() > 0 },
			func() []string { return glob(filepath.Join(w.dir, "w", "p", "*")) }, 0,
		},
		"return": {[]string{"--return", "noise", "--", "cp", name, "."}, func() bool { return len(parts()) > 0 }, parts, 1},
		"return to a directory": {
			[]string{"--return", "out", "--return-to", to, "--", "sh", "-c", "mkdir out; cd out; seq 3000 | xargs touch"},
			func() bool { return len(there()) > 0 }, there, 3000,
		},
	}
}

// A download, a return to Redis and one to a directory are stopped in the middle by a cancel, by a time limit and with their worker. The
// task ends accordingly and nothing of them is left, or its next round does it all.
func TestLongTransfersAreStopped(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"download", "return", "return to a directory"} {
		for stop, state := range map[string]sm.State{"cancel": sm.Terminated, "timeout": sm.TimedOut, "kill": sm.Succeeded} {
			t.Run(kind+", "+stop, func(t *testing.T) {
				t.Parallel()
				w, worker, c := inTheMiddle(t, kind)
				switch stop {
				case "cancel":
					w.manage(t, 0, "cancel", "1")
					worker.Signal(t, syscall.SIGCONT)
				case "timeout": // of a moment, from here on: no machine is too slow to begin within it
					w.Raw.HSet(t.Context(), w.Key("task:1"), "timeout", "0.001")
					w.Raw.ZAdd(t.Context(), w.Key("due"), redis.Z{Member: "1"})
					wait.Eventually(t, patience, func() bool { return w.hash(t, 1)["0:timeout"] != "" }, "its time is not over")
					worker.Signal(t, syscall.SIGCONT)
				case "kill":
					if kind == "download" { // no shim was needed yet
						worker.Kill(t)
					} else {
						w.killAtOnce(t, worker)
					}
					w.worker(t, "w")
				}
				w.manage(t, map[bool]int{true: 0, false: 1}[state == sm.Succeeded], "wait", "1")
				got := w.hash(t, 1)
				if got["outcome"] != string(state) && got["state"] != string(state) {
					t.Errorf("the task is %s, %s; want %s", got["state"], got["outcome"], state)
				}
				if stop == "kill" {
					w.isWhole(t, c)
				} else {
					wait.Eventually(t, patience, func() bool { return len(c.left()) == 0 }, "%v is left", late(func() string { return fmt.Sprint(c.left()) }))
				}
				w.sound(t)
			})
		}
	}
}

// inTheMiddle begins a transfer and freezes its worker before it has all of it. On a busy machine a test may come too late for that: then
// it begins anew.
func inTheMiddle(t *testing.T, kind string) (*world, *daemon, transfer) {
	t.Helper()
	for range 10 {
		w := newWorld(t, "slots=1")
		w.server(t)
		worker := w.worker(t, "w")
		c := w.transfers(t)[kind]
		w.manage(t, 0, slices.Concat([]string{"submit", "--timeout", "10m"}, c.submit)...)
		wait.Eventually(t, patience, c.begun, "nothing is on its way")
		worker.Signal(t, syscall.SIGSTOP)
		if got := w.hash(t, 1); got["state"] == "running" && got["round"] == "0" {
			return w, worker, c
		}
		worker.Signal(t, syscall.SIGCONT)
		daemontest.Stop(t, w.daemons)
	}
	t.Fatal("ten transfers were over before their workers were frozen")
	return nil, nil, transfer{}
}

// isWhole checks that the second round has returned all files, and that nothing of the first is left.
func (w *world) isWhole(t *testing.T, c transfer) {
	t.Helper()
	if got := w.hash(t, 1); got["round"] != "1" || got["losses"] != "1" || got["0:files"] != "" {
		t.Errorf("round %s, losses %s, files of the first round %q", got["round"], got["losses"], got["0:files"])
	}
	for _, name := range c.left() {
		if strings.Contains(name, "1.0") {
			t.Errorf("%s is left", name)
		}
	}
	dir := filepath.Join(w.dir, "results")
	w.manage(t, 0, "results", "--dir", dir, "1")
	files := 0
	_ = filepath.WalkDir(filepath.Join(dir, "1", "files"), func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
		}
		return nil // there is none without files
	})
	if files != c.files {
		t.Errorf("%d files, want %d", files, c.files)
	}
}

// An upload is stopped in the middle by a signal, and by a kill of submit: no task is opened. After a signal nothing of it is left, and
// what a kill has left is completed by the next submit.
func TestUploadIsStopped(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "slots=1")
			noise := make([]byte, 32<<20)
			_, _ = rand.Read(noise) // never fails
			w.file(t, "up/noise", string(noise), 0o644)
			args := []string{"--config", w.cfg, "submit", "--upload", filepath.Join(w.dir, "up"), "--", "cmp", "noise", filepath.Join(w.dir, "up", "noise")}
			proxy := w.Server.Proxy(t)
			put := proxy.HaltAfter(func(words []string) bool {
				return slices.ContainsFunc(words, func(word string) bool { return len(word) >= 1<<20 })
			})
			submit := w.launch(t, "submitter", "tdf-manager", slices.Concat(elsewhere(t, proxy.Addr()), args)...)
			wait.Closed(t, patience, put.Done(), "no part is put")
			parts := func() []string { return w.Raw.Keys(t.Context(), w.Key("blob:*")).Val() }
			submit.Killed = true // the test looks at the code itself
			submit.Signal(t, signal)
			proxy.Release()
			wait.Closed(t, patience, submit.Done, "submit does not end")
			if id := w.lastTask(t); id != 0 || submit.ProcessState.ExitCode() == 0 {
				t.Errorf("task %d was opened; submit ended with %d", id, submit.ProcessState.ExitCode())
			}
			if signal == syscall.SIGINT && len(parts()) > 0 {
				t.Errorf("%v are left", parts())
			}
			w.all(t)
			w.manage(t, 0, slices.Concat([]string{"submit", "--wait"}, args[3:])...)
			w.sound(t)
		})
	}
}
