package verbs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOutsideProgram: a short program of another module prints what the commands print.
func TestOutsideProgram(t *testing.T) {
	t.Parallel()
	program := buildOutside(t)
	b := newBench(t)
	b.must("queue", "add", "nightly", "threads=20", "nodes_pin=n1", "default_max_fails=3", "default_timeout=5m")
	b.must("submit", "--program", "p", "--source", "rsync:/s/run.sh", "--queue", "nightly")
	b.must("plan", "submit", planFile(t, pipeline), "-p", "day=mon")
	for _, c := range []struct {
		command []string
		outside []string
	}{
		{[]string{"ls"}, []string{"tasks"}},
		{[]string{"queue", "ls"}, []string{"queues"}},
		{[]string{"plan", "show", "2"}, []string{"plan", "2"}}, // 1 is a job
	} {
		out, err := exec.CommandContext(t.Context(), program, append([]string{b.srv.Socket(), b.ns}, c.outside...)...).Output()
		if err != nil {
			t.Fatalf("%q: %v", c.outside, err)
		}
		if diff := cmp.Diff(b.value(0, c.command...), oneValue(t, string(out))); diff != "" {
			t.Errorf("-%q +outside:\n%s", c.command, diff)
		}
	}
}

// mostLines is how long the program may be.
const mostLines = 60

// buildOutside builds the program in a module of its own, which has what this module needs.
func buildOutside(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	read := func(path string) []byte {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source := read("testdata/outside/main.go")
	if n := bytes.Count(source, []byte("\n")); n > mostLines {
		t.Errorf("the program has %d lines, want at most %d", n, mostLines)
	}
	write("main.go", source)
	write("go.sum", read(filepath.Join(root, "go.sum")))
	write("go.mod", []byte("module example.org/outside\n\ngo 1.26\n\nrequire github.com/tdf-go/tdf v0.0.0\n\nreplace github.com/tdf-go/tdf => "+root+"\n"))
	program := filepath.Join(dir, "outside")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", program, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}
