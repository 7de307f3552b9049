package verbs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
)

// What was exported reads as it does from Redis, nothing has gone from there, and what is there already is left out.
func TestExport(t *testing.T) {
	t.Parallel()
	b := cellar(t)
	dir := filepath.Join(t.TempDir(), "new", "archive")
	r := b.run("export", "--archive", dir, "--state", "failed")
	if r.code != 0 || r.out != "" || r.err != "exported 2\n" {
		t.Errorf("%+v", r)
	}
	if r := b.run("export", "--archive", dir); r.err != "exported 6, 2 were there already\n" || r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := b.run("export", "--archive", dir, "--json"); !reflect.DeepEqual(oneValue(t, r.out),
		map[string]any{"exported": 0.0, "unchanged": 8.0, "not_found": []any{}}) || r.code != 0 {
		t.Errorf("%+v", r)
	}
	live := byID(object(t, b.must("ls", "--json")))
	cold := byID(object(t, b.must("ls", "--json", "--archive", dir)))
	if len(live) != 8 || !reflect.DeepEqual(cold, live) {
		t.Errorf("%v\nin Redis: %v", cold, live)
	}
	b.srv.Do(t, "HINCRBY", b.ns+":task:2", "rev", "1")
	b.srv.Do(t, "HSET", b.ns+":task:2", "program", "changed")
	if r := b.run("export", "1-3", "--archive", dir); r.err != "exported 1, 2 were there already\n" {
		t.Errorf("%+v", r)
	}
	wantText(t, b.must("show", "2", "--archive", dir), "changed")
	before := b.must("show", "6", "--json")
	b.retire(dir)
	if after := b.must("show", "6", "--json", "--archive", dir); after != before {
		t.Errorf("%s\nbefore: %s", after, before)
	}
	if n := strings.Count(b.must("ls", "--archive", dir), "\n"); n != 9 {
		t.Errorf("%d tasks", n)
	}
	if r := b.run("export", "--archive", dir); r.err != "exported 0\n" || r.code != 0 {
		t.Errorf("%+v", r)
	}
}

// Without a directory each task is a line of JSON, the same as in a segment.
func TestExportLines(t *testing.T) {
	t.Parallel()
	b := cellar(t)
	file := filepath.Join(t.TempDir(), "tasks.jsonl")
	r := b.run("export")
	if n := strings.Count(r.out, "\n"); n != 8 || r.err != "exported 8\n" || r.code != 0 {
		t.Errorf("%d lines, %d, %s", n, r.code, r.err)
	}
	for line := range strings.Lines(r.out) {
		record, err := archive.ParseRecord([]byte(line))
		if err != nil || record.Fields["state"] != "archived" {
			t.Errorf("%v: %s", err, line)
		}
		if record.ID == 1 && record.Fields["0:output"] != "bytes \xff\xfe\x00\n" {
			t.Errorf("%q", record.Fields["0:output"])
		}
	}
	if out := b.must("export", "--output", file, "--json"); !strings.Contains(out, `"exported": 8`) {
		t.Errorf("%s", out)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != r.out {
		t.Errorf("the file has %d bytes, stdout %d: %v", len(text), len(r.out), err)
	}
	if r := b.run("export", "--queue", "q"); strings.Count(r.out, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	b := cellar(t)
	b.must("submit", "--program", "p", "--source", "rsync:run.sh")
	for args, want := range map[string]string{
		"--json":                   "--json",
		"--archive x --output y":   "archive output",
		"--state open":             "--state open",
		"--archive /proc/self/no":  "--archive",
		"--output /proc/self/no/x": "--output",
		"--queue=":                 "--queue is empty",
		"x":                        "task ids",
	} {
		if r := b.run(append([]string{"export"}, fields(args)...)...); r.code != 2 || !strings.Contains(r.err+r.out, want) {
			t.Errorf("export %s: ended with %d, want 2: %s", args, r.code, r.err)
		}
	}
	r := b.run("export", "8-10", "last", "--archive", t.TempDir())
	wantText(t, r.err, "exported 1", "not archived, or not there: 9-10")
	if r.code != 1 {
		t.Errorf("ended with %d, want 1", r.code)
	}
}

// stopper ends the command when it has written some lines.
type stopper struct {
	bytes.Buffer

	lines int
	stop  context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	if s.lines--; s.lines == 0 {
		s.stop()
	}
	return s.Buffer.Write(p)
}

// Interrupted, an export leaves a directory that is whole, and a file or none.
func TestExportInterrupted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 3*page + 1
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, "task %d\n", i)
	}
	b.runWith(t.Context(), in.String(), "submit", "--program", "p", "--source", "rsync:run.sh", "--each-line", "-")
	worktest.Drain(t, b.store, worktest.Echo)
	b.archiveAll()
	ctx, cancel := context.WithCancel(t.Context())
	var errs daemontest.Output
	out := &stopper{lines: page + 20, stop: cancel}
	if code := executeTo(ctx, "", out, &errs, "--config", b.file, "export"); code == 0 || !strings.Contains(errs.String(), "ended in the middle; so far: exported 5") {
		t.Errorf("ended with %d: %s", code, errs.String())
	}
	dir := filepath.Join(t.TempDir(), "archive")
	ctx, cancel = context.WithCancel(t.Context())
	go func() { // in the middle, or not: both must do
		for ctx.Err() == nil {
			if found, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(found) > 0 {
				cancel()
			}
		}
	}()
	b.runWith(ctx, "", "export", "--archive", dir)
	cancel()
	if left, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(left) > 0 {
		t.Errorf("%v is not sealed", left)
	}
	b.must("export", "--archive", dir)
	if got := strings.Count(b.must("ls", "--limit", "0", "--archive", dir), "succeeded"); got != n {
		t.Errorf("%d of %d tasks", got, n)
	}
}
