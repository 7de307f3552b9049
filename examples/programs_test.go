// Package examples runs the short programs beside it as their readers would: each in a
// module of its own, against a Redis and a server.
package examples

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/server"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const patience = 2 * time.Minute

// programs are the short programs, with how many lines each may have, and what it prints.
var programs = []struct {
	name, file string
	lines      int
	prints     string
}{
	{"hello", "main.go", 25, "hello world <nil>\n"},
	{"stream", "main.go", 60, "1000 results, sum 332833500\n"},
	{"retry", "main.go", 60, "{example.org 42} <nil> after 3 tries\ntrue\n"},
	{"fan", "main.go", 60, "10 words <nil>\n"},
	{"cron", "main.go", 60, ""},
	{"unittest", "thumb_test.go", 60, ""},
}

// copied is a module of its own that has the programs, on the Redis of the tests.
type copied struct {
	dir        string
	namespaces map[string]string
}

func copyPrograms(t *testing.T) copied {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	c := copied{t.TempDir(), map[string]string{}}
	write := func(name string, text []byte) {
		t.Helper()
		name = filepath.Join(c.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	base := redistest.Namespace(t)
	for _, p := range programs {
		source := read(filepath.Join(p.name, p.file))
		if n := bytes.Count(source, []byte("\n")); n > p.lines {
			t.Errorf("%s has %d lines, want at most %d", p.name, n, p.lines)
		}
		c.namespaces[p.name] = base + p.name
		place := fmt.Sprintf("Addr: %q, Namespace: %q", redistest.Shared(t).Socket(), c.namespaces[p.name])
		source = bytes.ReplaceAll(source, fmt.Appendf(nil, `Addr: "localhost:6379", Namespace: %q`, p.name), []byte(place))
		write(filepath.Join(p.name, p.file), source)
	}
	write("go.sum", read(filepath.Join(root, "go.sum")))
	write("go.mod", []byte("module example.org/programs\n\ngo 1.26\n\nrequire github.com/tdf-go/tdf v0.0.0\n\nreplace github.com/tdf-go/tdf => "+root+"\n"))
	return c
}

// golang runs the go command in the module.
func (c *copied) golang(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// program is one of them, to be started.
func (c *copied) program(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(c.dir, "bin", name))
	cmd.Dir = c.dir
	return cmd
}

// serve runs a server until the test ends.
func serve(t *testing.T, namespace string, settings ...string) {
	t.Helper()
	s, err := server.New(storetest.At(t, storetest.Where(redistest.Shared(t)), namespace, nil, settings...), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The README shows the first of them as it is.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	hello, err := os.ReadFile("hello/main.go")
	if err != nil || !bytes.Contains(readme, hello) {
		t.Errorf("examples/hello/main.go is not in README.md, %v", err)
	}
}

// TestPrograms: each does as a program of another module what its reader expects.
func TestPrograms(t *testing.T) {
	t.Parallel()
	c := copyPrograms(t)
	c.golang(t, "build", "-o", "bin/", "./...")
	t.Run("cron", func(t *testing.T) {
		t.Parallel()
		testCron(t, &c)
	})
	t.Run("unittest", func(t *testing.T) {
		t.Parallel()
		if out := c.golang(t, "test", "./unittest"); !strings.HasPrefix(out, "ok") {
			t.Error(out)
		}
	})
	for _, p := range programs {
		if p.prints == "" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			serve(t, c.namespaces[p.name])
			var stderr strings.Builder
			cmd := c.program(t, p.name)
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || string(out) != p.prints {
				t.Errorf("%v, it wrote %q, want %q\n%s", err, out, p.prints, &stderr)
			}
		})
	}
}

// testCron runs two programs with the same timetable: they submit one task for each tick.
func testCron(t *testing.T, c *copied) {
	t.Helper()
	var outs [2]*bufio.Scanner
	var crons [2]*exec.Cmd
	for i := range crons {
		crons[i] = c.program(t, "cron")
		pipe, err := crons[i].StdoutPipe()
		if err == nil {
			err = crons[i].Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		outs[i] = bufio.NewScanner(pipe)
	}
	lines := map[string]int{}
	for range 3 { // a tick may come between the two starts
		for _, out := range outs {
			if !out.Scan() {
				t.Fatal("it ends early")
			}
			lines[out.Text()]++
		}
	}
	for i, p := range crons {
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		for outs[i].Scan() {
			lines[outs[i].Text()]++
		}
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	again := 0
	for line, n := range lines {
		if strings.HasSuffix(line, "existing true") {
			again += n
		} else if n != 1 {
			t.Errorf("%q comes %d times", line, n)
		}
	}
	if again == 0 {
		t.Errorf("no tick was submitted twice: %v", lines)
	}
}
