package acceptance

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	sm "github.com/tdf-go/tdf/statemachine"
)

func id2text(id int64) string { return strconv.FormatInt(id, 10) }

// submit opens a task with tdf-manager and returns its id.
func (w *world) submit(t *testing.T, name, source string, words ...string) int64 {
	t.Helper()
	args := []string{program(t, "tdf-manager"), "--config", w.cfg, "submit", "-q", "--program", name, "--source", source, "--"}
	out, stderr, code := run(t, w.dir, append(args, words...)...)
	id, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if code != 0 || err != nil {
		t.Fatalf("submit ended with %d: %s%s", code, out, stderr)
	}
	return id
}

// logs is what tdf-manager prints as a task's output.
func (w *world) logs(t *testing.T, id int64) string {
	t.Helper()
	out, stderr, code := run(t, w.dir, program(t, "tdf-manager"), "--config", w.cfg, "logs", id2text(id))
	if code != 0 {
		t.Fatalf("logs ended with %d: %s", code, stderr)
	}
	return out
}

// A37, A38: words reach run.sh as they were given on the command line.
func TestWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.all(t)
	pwn := filepath.Join(w.dir, "pwn")
	spec := w.script(t, "p", `echo $#; for a in "$@"; do printf '[%s]' "$a"; done`)
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"10", "11", "12"}, "3\n[10][11][12]"},
		{nil, "0\n"},
		{[]string{"0;", "touch", pwn}, "3\n[0;][touch][" + pwn + "]"},
		{[]string{"0; touch " + pwn}, "1\n[0; touch " + pwn + "]"},
		{[]string{"$(touch " + pwn + ")", "`id`"}, "2\n[$(touch " + pwn + ")][`id`]"},
		{[]string{">", "f", "*", "$HOME", "--help"}, "5\n[>][f][*][$HOME][--help]"},
		{[]string{"", " ", "a b"}, "3\n[][ ][a b]"},
	} {
		id := w.submit(t, spec.Program, spec.Source, c.words...)
		w.archived(t, id, sm.Succeeded)
		if out := w.logs(t, id); out != c.want {
			t.Errorf("%q: run.sh wrote %q, want %q", c.words, out, c.want)
		}
	}
	for _, name := range []string{pwn, filepath.Join(w.dir, "w", "p", "f"), filepath.Join(w.dir, "w", "f")} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was made: the input was interpreted", name)
		}
	}
}

// A42, A43: the named file holds all of 20 MB with every byte value, the record
// head and tail of it and what is missing; a short output is in both alike.
func TestOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "task_output_filename=res/$worker-$taskId-$round-$program.out", "output_limit=64KiB")
	w.all(t)
	block := make([]byte, 0, 1<<16)
	for i := range 1 << 16 {
		block = append(block, byte(i^i>>8))
	}
	const blocks = 320 // 20 MiB
	whole := bytes.Repeat(block, blocks)
	data := w.file(t, "data", string(block), 0o600)
	big := w.script(t, "big", "for i in $(seq "+strconv.Itoa(blocks)+"); do cat "+data+"; done")
	small := w.script(t, "p", `printf 'a\0\377\nb'`)
	ids := w.open(t, big, small)
	task := w.archived(t, ids[0], sm.Succeeded)
	file := func(name string) string {
		out, err := os.ReadFile(filepath.Join(w.dir, "w", "res", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if out := file("w-1-0-big.out"); out != string(whole) {
		t.Errorf("the file holds %d bytes, not the %d that were written", len(out), len(whole))
	}
	out := task.Fields["0:output"]
	missing := strconv.Itoa(len(whole) - 1<<16)
	if !strings.HasPrefix(out, string(block[:1000])) || !strings.HasSuffix(out, string(block[len(block)-1000:])) ||
		!strings.Contains(out, missing) || len(out) > 1<<16+200 {
		t.Errorf("%d bytes are recorded; want head, tail and that %s bytes are missing", len(out), missing)
	}
	checkFields(t, task, map[string]string{"0:output_bytes": strconv.Itoa(len(whole)), "0:error": ""})
	task = w.archived(t, ids[1], sm.Succeeded)
	checkFields(t, task, map[string]string{"0:output": "a\x00\xff\nb", "0:output_bytes": "-"})
	if out := file("w-2-0-p.out"); out != task.Fields["0:output"] {
		t.Errorf("the file holds %q, the record %q", out, task.Fields["0:output"])
	}
}
