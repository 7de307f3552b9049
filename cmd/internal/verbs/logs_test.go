package verbs

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/worktest"
)

// Each task has a header, byte for byte what tail writes for files.
func TestLogsOfSeveral(t *testing.T) {
	t.Parallel()
	b := played(t)
	r := b.run("logs", "2-6")
	want := "==> task 2 <==\nhalf\n\n==> task 3 <==\nout\x00\xff\n\n==> task 4 <==\nout\x00\xff\n"
	if r.out != want || r.code != 1 {
		t.Errorf("%+v, want %q", r, want)
	}
	if want := "1 not run yet: 5\nno such task: 6\n"; r.err != want {
		t.Errorf("said %q, want %q", r.err, want)
	}
	r = b.run("logs", "1,4", "--round", "0")
	if want := "==> task 1 <==\nout\x00\xff\n\n==> task 4 <==\n"; r.out != want || r.code != 0 || r.err != "1 without stdout; --stderr shows the error: 4\n" {
		t.Errorf("%+v, want %q", r, want)
	}
	if r := b.run("logs", "1,4", "--round", "1"); r.code != 1 || !strings.Contains(r.err, "1 without this round: 1\n") {
		t.Errorf("%+v", r)
	}
	if out := b.must("logs", "--state", "failed", "--stderr"); !strings.HasPrefix(out, "==> task 2 <==\none\n") {
		t.Errorf("%q", out)
	}
	list, _ := b.value(0, "logs", "1-3").([]any)
	if len(list) != 3 || list[1].(map[string]any)["output"] != "half\n" {
		t.Errorf("JSON: %v", list)
	}
	if list, _ := b.value(1, "logs", "--state", "open").([]any); list == nil || len(list) != 0 {
		t.Errorf("JSON: %v", list)
	}
	for args, want := range map[string]string{"logs": "which tasks?", "logs 1-3 -f": "--follow takes one task", "logs x": "id of one task", "logs 1-": "3-9"} {
		if r := b.run(fields(args)...); r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// Where only stderr has something, logs says so, and how much.
func TestLogsPointsToStderr(t *testing.T) {
	t.Parallel()
	b := played(t)
	if r := b.run("logs", "4", "--round", "0"); r.out != "" || r.err != "nothing on stdout; --stderr shows its 9 bytes\n" || r.code != 0 {
		t.Errorf("%+v", r)
	}
	for _, args := range []string{"logs 1", "logs 2", "logs 4 --round 0 --stderr", "logs 4 --round 0 --json"} {
		if r := b.run(fields(args)...); r.err != "" || r.code != 0 {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// An archive says the same.
func TestLogsOfSeveralFromArchive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.runWith(t.Context(), "a\nb\nc\n", "submit", "--program", "p", "--source", "rsync:run.sh", "--each-line", "-")
	worktest.Drain(t, b.store, worktest.Echo)
	before, list := b.must("logs", "1-3"), b.must("logs", "1-3", "--json")
	dir := filepath.Join(t.TempDir(), "archive")
	b.retire(dir)
	if after := b.must("logs", "1-3", "--archive", dir); after != before || strings.Count(before, "==>") != 3 {
		t.Errorf("%q, want %q", after, before)
	}
	if after := b.must("logs", "all", "--archive", dir, "--json"); after != list {
		t.Errorf("%s, want %s", after, list)
	}
	if r := b.run("logs", "2-4", "--archive", dir); r.code != 1 || r.err != "not in the archive: 4\n" {
		t.Errorf("%+v", r)
	}
}

// Nobody takes a part of an output for the whole.
func TestCutOutputIsSaid(t *testing.T) {
	t.Parallel()
	b := played(t)
	b.srv.Do(t, "HSET", b.ns+":task:1", "0:output_bytes", "1000", "0:output_sha256", "abc")
	if r := b.run("logs", "1"); r.out != "out\x00\xff\n" || r.code != 0 ||
		r.err != "tdf-manager: only a part of the 1000 bytes is kept ([worker] output_limit, output_max)\n" {
		t.Errorf("%+v", r)
	}
	if r := b.run("logs", "1,3"); r.err != "1 cut ([worker] output_limit, output_max): 1\n" {
		t.Errorf("%+v", r)
	}
	if r := b.run("logs", "1", "--stderr"); r.err != "" {
		t.Errorf("%+v", r)
	}
	wantText(t, b.must("show", "1"), "output (1000 bytes, of which a part is kept, sha256 abc)")
	b.srv.Do(t, "HSET", b.ns+":task:1", "cut", "0 output files")
	b.srv.Do(t, "HSET", b.ns+":task:4", "cut", "0 output") // not of its last round
	wantText(t, b.must("show", "1"), "cut          output, files")
	if out := b.must("ls", "1-4"); strings.Count(out, "succeeded (cut)") != 1 || strings.Count(out, "(cut)") != 1 {
		t.Errorf("ls:\n%s", out)
	}
	if one := b.value(0, "ls", "1").([]any)[0].(map[string]any); fmt.Sprint(one["cut"]) != "[output files]" {
		t.Errorf("JSON: %v", one)
	}
	b.srv.Do(t, "HSET", b.ns+":plan:1", "cut", "1")
	for _, tasks := range []string{"1-4", "j1"} { // those of a plan are found otherwise
		if r := b.run("wait", tasks); !strings.Contains(r.err, "1 lost a part of their output or files (ls marks them as cut, show says what; "+
			"raise [worker] output_max, or submit --on-cut fail): 1\n") {
			t.Errorf("wait %s: %+v", tasks, r)
		}
		r := b.run("wait", "--json", tasks)
		if !strings.Contains(strings.Join(strings.Fields(r.out), ""), `"cut":[1]`) || r.err != "" {
			t.Errorf("wait %s: %+v", tasks, r)
		}
	}
	if object := b.value(0, "show", "j1").(map[string]any); object["any_cut"] != true || object["cut"] != nil {
		t.Errorf("JSON: %v", object)
	}
	if r := b.run("wait", "4"); r.err != "" {
		t.Errorf("%+v", r)
	}
	b.srv.Do(t, "HSET", b.ns+":task:2", "cut", "0 output")
	b.must("retry", "2")
	b.must("cancel", "6")
	if r := b.run("wait", "2,4"); r.err != "" { // its retry counts
		t.Errorf("%+v", r)
	}
	b.srv.Do(t, "HSET", b.ns+":task:2", "0:error_bytes", "99", "0:error_sha256", "def")
	if r := b.run("logs", "2", "--stderr"); r.err != "tdf-manager: only a part of the 99 bytes is kept ([worker] output_limit, output_max)\n" {
		t.Errorf("%+v", r)
	}
}
