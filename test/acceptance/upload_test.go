package acceptance

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
