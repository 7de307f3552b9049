package verbs

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/task"
)

// uploading is a directory with a program and a command.
func uploading(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"run.sh": "#!/bin/sh\n", "sim": "#!/bin/sh\n", "data": "1 2 3\n"} {
		mode := os.FileMode(0o755)
		if name == "data" {
			mode = 0o644
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What is uploaded is in Redis once, and the tasks name it by its hash.
func TestSubmitUpload(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := uploading(t)
	hash := ""
	for _, c := range []struct {
		flags string
		words []string
		out   string
		// source is what it is, with HASH for the hash; input is that of each task.
		source, input string
	}{
		{"", []string{"./sim", "--seed", "7"}, "opened task 1: ./sim --seed 7\n", "command:./sim#sha256=HASH", "--seed 7"},
		{"--array 1-2", []string{"cat", "data"}, "opened 2 tasks: 2-3, as job j2\n", "command:cat#sha256=HASH", "data 1"},
		{"--program p", []string{"x"}, "opened task 4: p x\n", "blob:sha256=HASH", "x"},
		{"--each-line testdata/two-lines.txt", nil, "opened 2 tasks: 5-6, as job j4\n", "command:sh#sha256=HASH", `-c "one two"`},
		{"--program p --each-line testdata/two-lines.txt", nil, "opened 2 tasks: 7-8, as job j5\n", "blob:sha256=HASH", "one two"},
	} {
		id, _ := b.store.LastID(t.Context())
		args := append([]string{"submit", "--upload", dir}, strings.Fields(c.flags)...)
		r := b.run(append(append(args, "--"), c.words...)...)
		record, err := b.store.Task(t.Context(), id+1)
		if err != nil || r.code != 0 || r.out != c.out || r.err != "" {
			t.Fatalf("%q: ended with %d, %q, %q, %v", args, r.code, r.out, r.err, err)
		}
		got := task.Decode(record.ID, record.Fields)
		if hash == "" {
			hash = task.SourceSHA256(got.Source)
		}
		input := task.InputText(got.Input, got.Argv)
		if want := strings.ReplaceAll(c.source, "HASH", hash); hash == "" || got.Source != want || input != c.input {
			t.Errorf("%q: source %s and input %s, want %s and %s", args, got.Source, input, want, c.input)
		}
	}
	if err := b.store.Blob(t.Context(), hash, io.Discard); err != nil {
		t.Error(err)
	}
	if n, err := b.store.Redis.ZCard(t.Context(), b.ns+":blobs").Result(); err != nil || n != 1 {
		t.Errorf("%d blobs, %v, want 1", n, err)
	}
}

// Where something is wrong, nothing is opened and nothing uploaded.
func TestSubmitUploadRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := uploading(t)
	if err := b.store.PublishBlobs(t.Context(), 100, 1000, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "run.sh")); err != nil {
		t.Fatal(err)
	}
	for args, say := range map[string][]string{
		"--upload DIR":                       {"--program is missing"},
		"--upload DIR --program p":           {"--upload DIR", "./p/run.sh", "does not exist"},
		"--upload DIR/sim --program p":       {"is a file, and not run.sh", "run the file as a command"},
		"--upload DIR/none -- x":             {"DIR/none", "no such file"},
		"--upload DIR --source rsync:run.sh": {"source", "upload"},
		"--upload DIR -- ../sim":             {"../sim", "outside", "./../sim", "DIR"},
		"--upload DIR --queue none -- ./sim": {"none"},
		"--upload DIR --timeout x -- ./sim":  {"timeout"},
		"--upload DIR --dry-run -- ./sim":    nil,
		"--upload DIR -- ./sim":              {"--upload DIR", "the limit of one blob is 100 bytes", "[server] blob_limit", "nothing was opened"},
		"--upload DIR -- ./foo":              {"./foo", "no executable file of --upload DIR", "which holds data, sim;", "correct the path"},
		"--upload DIR -- ./data":             {"./data", "make the file executable"},
		"--upload DIR/sim -- ./data":         {"./data", "which holds sim;"},
		"--upload DIR --dry-run -- ./{}":     nil,
		"-- ./sim":                           {"./sim", "relative path", "with --upload", "absolute path"},
	} {
		r := b.run(append([]string{"submit"}, strings.Fields(strings.ReplaceAll(args, "DIR", dir))...)...)
		for _, text := range say {
			if text = strings.ReplaceAll(text, "DIR", dir); !strings.Contains(r.err, text) {
				t.Errorf("%s: %q, want %q in it", args, r.err, text)
			}
		}
		if (r.code != 0) != (say != nil) {
			t.Errorf("%s: ended with %d, %s", args, r.code, r.err)
		}
	}
	for words, say := range map[string]string{"sim": "write ./sim", "data": "", "./sim": ""} {
		if r := b.run("submit", "--upload", dir, "--dry-run", "--", words); r.code != 0 || !strings.Contains(r.err, say) || (say == "") != (r.err == "") {
			t.Errorf("%s: ended with %d, %q", words, r.code, r.err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a\nb"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := b.run("submit", "--upload", dir, "--", "./foo"); r.code != 2 || !strings.Contains(r.err, `which holds a\nb, data, sim;`) {
		t.Errorf("a name of two lines: ended with %d, %q", r.code, r.err)
	}
	if r := b.run("submit", "--upload", dir+"/sim/none", "--", "./foo"); r.code != 2 || !strings.Contains(r.err, "sim/none: not a directory") {
		t.Errorf("a path through a file: ended with %d, %q", r.code, r.err)
	}
	last, err := b.store.LastID(t.Context())
	if keys := b.store.Redis.Keys(t.Context(), b.ns+":blob*").Val(); err != nil || last > 0 || len(keys) > 0 {
		t.Errorf("task %d is open, keys %q, %v", last, keys, err)
	}
}

// What steps of a plan take along is in Redis once, for those of its tasks that are opened later too, and stays as long as one may be opened.
func TestPlanUpload(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := uploading(t)
	file := planFile(t, `defaults: {upload: "`+dir+`"}
steps:
  list: {source: command:./sim}
  each: {source: command:sh, foreach: {lines: list}, argv: ["${item}"]}
  program: {program: p}
`)
	if id := b.must("plan", "submit", file, "--pin", "require"); id != "1\n" {
		t.Fatal(id)
	}
	record, err := b.store.Task(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	source := record.Fields["source"]
	hash := task.SourceSHA256(source)
	if n, err := b.store.Redis.ZCard(t.Context(), b.ns+":blobs").Result(); err != nil || n != 1 || source != "command:./sim"+task.Pin(hash) {
		t.Errorf("%d blobs, %v, source %s", n, err, source)
	}
	if record, err = b.store.Task(t.Context(), 2); err != nil || record.Fields["source"] != task.BlobSource(hash) {
		t.Errorf("source %s, %v", record.Fields["source"], err)
	}
	for id := range 2 { // only the step that is to be opened refers to it
		b.srv.Do(t, "HSET", b.ns+":task:"+strconv.Itoa(id+1), "source", "rsync:x")
	}
	b.store.Redis.ZAdd(t.Context(), b.ns+":blobs", redis.Z{Member: hash, Score: 1})
	if n, _, err := b.store.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	for text, say := range map[string]string{
		"steps:\n  s: {source: command:x, upload: /none/of/these}":                  "p.yaml:2: steps.s.upload: pack /none/of/these: ",
		"steps:\n  s: {program: p, upload: " + filepath.Join(dir, "data") + "}":     "steps.s.upload: program cannot be run: ",
		"steps:\n  s: {program: p, queue: none, upload: /none/of/these}":            "steps.s: ",
		"steps:\n  s: {program: p, source: 'rsync:/x/run.sh', upload: " + dir + "}": "steps.s: field upload: ",
	} {
		r := b.run("plan", "submit", planFile(t, text))
		if r.code != 2 || !strings.Contains(r.err, say) {
			t.Errorf("%s: ended with %d: %s", text, r.code, r.err)
		}
	}
	if last, err := b.store.LastID(t.Context()); last != 2 || err != nil {
		t.Errorf("task %d was opened, %v", last, err)
	}
}
