package verbs

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/task"
)

// stdinOf is what Redis keeps for the stdin of a task.
func stdinOf(t *testing.T, b *bench, id int64) string {
	t.Helper()
	record, err := b.store.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if stdin := record.Fields["stdin"]; stdin != "" {
		if err := b.store.Blob(t.Context(), task.SourceSHA256(stdin), &got); err != nil {
			t.Errorf("task %d has stdin %s: %v", id, stdin, err)
		}
	}
	return got.String()
}

// A file, or the stdin of submit, is the stdin of each task, also where JSON or a plan file says so; show says how much it is.
func TestSubmitStdin(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "in")
	for name, text := range map[string]string{
		file: "from a file", filepath.Join(dir, "plan.yaml"): "steps:\n  s:\n    source: command:cat\n    stdin: file:" + file + "\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.must("submit", "--stdin", file, "--array", "1-2", "--", "cat")
	for _, c := range []struct{ stdin, flags string }{
		{"from stdin", "--stdin - --array 1-2 -- cat"},
		{`{"source":"command:cat","stdin":"file:` + file + `"}`, "--from-json -"},
	} {
		if r := b.runWith(t.Context(), c.stdin, append([]string{"submit"}, strings.Fields(c.flags)...)...); r.code != 0 {
			t.Fatalf("%s: %+v", c.flags, r)
		}
	}
	b.must("plan", "submit", filepath.Join(dir, "plan.yaml"))
	b.must("submit", "--", "cat")
	for i, want := range []string{"from a file", "from a file", "from stdin", "from stdin", "from a file", "from a file", ""} {
		if got := stdinOf(t, b, int64(i+1)); got != want {
			t.Errorf("task %d reads %q, want %q", i+1, got, want)
		}
	}
	wantText(t, b.must("show", "3"), "stdin ", "blob:sha256=", " (10 bytes)")
	b.must("submit", "--stdin", "blob:sha256="+strings.Repeat("0", 64), "--dry-run", "--", "cat")
	for _, key := range b.store.Redis.Keys(t.Context(), b.ns+":blob:*").Val() {
		b.store.Redis.Del(t.Context(), key)
	}
	wantText(t, b.must("show", "3"), "(kept no longer)")
}

// Where something is wrong with it, nothing is opened and nothing is kept.
func TestSubmitStdinRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	for args, say := range map[string]string{
		"--stdin DIR/none -- cat":                         "stdin \"DIR/none\": stat DIR/none: no such file",
		"--stdin DIR -- cat":                              "stdin \"DIR\": it is a directory",
		"--stdin= -- cat":                                 "--stdin is empty",
		"--stdin - --each-line - -- cat":                  "from the same stdin",
		"--stdin - --from-json -":                         "from the same stdin",
		"--stdin - --queue none -- cat":                   "none",
		"--stdin - --dry-run -- cat":                      "",
		"--from-json testdata/stdin.json --queue default": "stdin \"no/such/file\"",
	} {
		r := b.runWith(t.Context(), "text", append([]string{"submit"}, strings.Fields(strings.ReplaceAll(args, "DIR", dir))...)...)
		if say = strings.ReplaceAll(say, "DIR", dir); !strings.Contains(r.err, say) || (r.code == 2) != (say != "") {
			t.Errorf("%s: ended with %d, %q, want %q", args, r.code, r.err, say)
		}
	}
	last, err := b.store.LastID(t.Context())
	if keys := b.store.Redis.Keys(t.Context(), b.ns+":blob*").Val(); err != nil || last > 0 || len(keys) > 0 {
		t.Errorf("task %d is open, keys %q, %v", last, keys, err)
	}
}

// A named pipe is opened once: who writes into it would not come again.
func TestSubmitStdinFromAPipe(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(pipe, []byte("from a pipe"), 0) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan result, 1)
	go func() { done <- b.runWith(ctx, "", "submit", "--stdin", pipe, "--array", "1-2", "--", "cat") }()
	select {
	case r := <-done:
		if err := <-wrote; r.code != 0 || err != nil {
			t.Fatalf("%+v, %v", r, err)
		}
	case <-ctx.Done():
		t.Fatal("waits for another writer")
	}
	if got := stdinOf(t, b, 2); got != "from a pipe" {
		t.Errorf("it reads %q", got)
	}
}
