package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// reading is a task that has text for its stdin, which Redis keeps.
func reading(t *testing.T, s *site, text string) func(*task.Definition) {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])
	if err := s.Store.PutBlob(t.Context(), hash, int64(len(text)), strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return func(d *task.Definition) { storetest.Set(d, "stdin", task.BlobSource(hash)) }
}

// blobCounter counts how often something is read of the site.
type blobCounter struct {
	Backend

	blobs atomic.Int64
}

func (c *blobCounter) Blob(ctx context.Context, hash string, w io.Writer) error {
	c.blobs.Add(1)
	return c.Backend.Blob(ctx, hash, w)
}

// Programs and commands read all of their stdin, in each round anew, which is fetched once a slot; those without one read nothing.
func TestStdin(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	large := strings.Repeat("0123456789abcdef", 1<<16) + "end"
	backend := &blobCounter{Backend: s.Store}
	s.start(t, func(o *options) { o.Backend = backend })
	again := s.script(t, "p", `cat; [ $TDF_ROUND = 1 ] || exit 1`)
	for _, c := range []struct {
		change []func(*task.Definition)
		round  int
		output string
		reads  int64
	}{
		{[]func(*task.Definition){again, reading(t, s, "one\ntwo\n"), func(d *task.Definition) { storetest.Set(d, "max_fails", "1") }}, 1, "one\ntwo\n", 1},
		{[]func(*task.Definition){command(t, "cat"), reading(t, s, "one\ntwo\n")}, 0, "one\ntwo\n", 0},
		{[]func(*task.Definition){command(t, "cat")}, 0, "", 0},
		{[]func(*task.Definition){command(t, "sh", "-c", "wc -c; head -c 1 < /dev/stdin"), reading(t, s, large)}, 0, strconv.Itoa(len(large)) + "\n0", 1},
		{[]func(*task.Definition){command(t, "cat"), reading(t, s, "")}, 0, "", 1},
	} {
		before := backend.blobs.Load()
		got := s.settle(t, s.open(t, c.change...), sm.Succeeded)
		checkFields(t, got, map[string]string{strconv.Itoa(c.round) + ":output": c.output, "round": strconv.Itoa(c.round)})
		if reads := backend.blobs.Load() - before; reads != c.reads {
			t.Errorf("%q was fetched %d times, want %d", c.output[:min(len(c.output), 10)], reads, c.reads)
		}
	}
}

// A program cannot write to what the next one reads; one of the worker's own user that gets at it all the same has it fetched again.
func TestStdinIsNotTheProgramsToChange(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	backend := &blobCounter{Backend: s.Store}
	s.start(t, func(o *options) { o.Backend = backend })
	text := reading(t, s, "good")
	for _, how := range []string{
		`(printf bad >&0) 2>/dev/null || echo refused`,
		`chmod 666 /proc/self/fd/0 && printf bad > /dev/stdin; echo done`,
	} {
		before := backend.blobs.Load()
		s.await(t, s.open(t, command(t, "sh", "-c", how), text), sm.Executed)
		got := s.await(t, s.open(t, command(t, "cat"), text), sm.Executed)
		checkFields(t, got, map[string]string{"0:output": "good"})
		if changed := strings.HasPrefix(how, "chmod"); changed && backend.blobs.Load() == before {
			t.Errorf("%s: it was not fetched again", how)
		}
	}
}

// A program of another user reads it, also by the name /dev/stdin, and cannot write.
func TestStdinOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	s := newSite(t)
	dir, err := os.MkdirTemp("", "stdin-test-") //nolint:usetesting // others cannot enter t.TempDir
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.start(t, func(o *options) {
		o.TempDir = dir
		if o.container, err = shim.New(shim.Options{Want: shim.Group, Name: s.Namespace, RunAs: "nobody"}); err != nil {
			t.Fatal(err)
		}
	})
	got := s.await(t, s.open(t, command(t, "sh", "-c", "cat /dev/stdin; (: > /dev/stdin) 2>/dev/null || echo refused"), reading(t, s, "text\n")), sm.Executed)
	checkFields(t, got, map[string]string{"0:output": "text\nrefused\n"})
}

// A round whose stdin cannot be had does not run its program, and says why.
func TestStdinThatCannotBeHad(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(t, func(o *options) {
		o.Handlers = map[string]Handler{"h": func(context.Context, *Job) error { return nil }}
	})
	other := strings.Repeat("0", 64)
	if err := s.Store.PutBlob(t.Context(), other, 1, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	set := func(name, text string) func(*task.Definition) {
		return func(d *task.Definition) { storetest.Set(d, name, text) }
	}
	for stdin, want := range map[string][]string{
		task.BlobSource(strings.Repeat("1", 64)): {"fetch", "stdin", "worker 'w'", strings.Repeat("1", 64), "no such blob"},
		task.BlobSource(other):                   {"fetch", "stdin", "checksum mismatch", other},
		"file:/etc/passwd":                       {"program", `"file:/etc/passwd"`, "want blob:sha256=HEX"},
	} {
		got := s.await(t, s.open(t, command(t, "cat"), set("stdin", stdin)), sm.Executed)
		checkContains(t, "class and error", got.Fields["0:class"]+" "+got.Fields["0:error"], want...)
		checkFields(t, got, map[string]string{"0:output": ""})
	}
	handled := s.open(t, set("program", "h"), set("stdin", task.BlobSource(other)))
	checkContains(t, "error", s.await(t, handled, sm.Executed).Fields["0:error"], "Go handler has no standard input")
}
