package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/worktest"
)

func TestSubmitWords(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		args        []string
		out         string
		input, argv string
	}{
		{[]string{"--", "1", "2", "3"}, "opened task 1: p 1 2 3\n", "1 2 3", ""},
		{[]string{"-q", "--", "1"}, "2\n", "1", ""},
		{[]string{"--", "a b", ""}, "opened task 3: p \"a b\" \"\"\n", "", `["a b",""]`},
		{nil, "opened task 4: p \n", "", ""},
		{[]string{"--", "-x", "--json"}, "opened task 5: p -x --json\n", "-x --json", ""},
		{[]string{"--", "\x1b[2J"}, "opened task 6: p \\x1b[2J\n", "\x1b[2J", ""},
	} {
		if out := b.must(append([]string{"submit", "--program", "p", "--source", "rsync:/s/run.sh"}, c.args...)...); out != c.out {
			t.Errorf("%q printed %q, want %q", c.args, out, c.out)
		}
		last, err := b.store.LastID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		task, err := b.store.Task(t.Context(), last)
		if err != nil || task.Fields["input"] != c.input || task.Fields["argv"] != c.argv {
			t.Errorf("%q opened input %q, argv %q, %v", c.args, task.Fields["input"], task.Fields["argv"], err)
		}
	}
}

func TestSubmitValues(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("submit", "--program", "p", "--timeout", "1h30m", "--start-after", "2026-11-21T08:00:00Z", "--end-before", "inf",
		"--max-fails", "2", "--max-timeouts", "inf", "--max-losses", "0", "--fail-on", "exit")
	task, err := b.store.Task(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"timeout": "5400", "start_after": "1795248000", "end_before": "inf", "max_fails": "2",
		"max_timeouts": "inf", "max_losses": "0", "fail_on": "exit",
	} {
		if got := task.Fields[field]; got != want {
			t.Errorf("%s = %q, want %q", field, got, want)
		}
	}
	b.must("submit", "--program", "p", "--start-after", "+10m")
	now, err := b.store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	later, err := b.store.Task(t.Context(), 2)
	if ahead := later.StartAfter - now; err != nil || ahead < 590e6 || ahead > 600e6 {
		t.Errorf("+10m is %d microseconds ahead, %v", ahead, err)
	}
}

func TestSubmitLines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.runWith(t.Context(), "1 2\r\n\n$(id)", "submit", "--program", "p", "--each-line", "-")
	if r.code != 0 || r.out != "opened 3 tasks: 1-3, as job j1\n" {
		t.Fatalf("%+v", r)
	}
	for id, want := range map[int64]string{1: "1 2", 2: "", 3: "$(id)"} {
		if task, err := b.store.Task(t.Context(), id); err != nil || task.Fields["input"] != want {
			t.Errorf("task %d: input %q, %v, want %q", id, task.Fields["input"], err, want)
		}
	}
	if r := b.runWith(t.Context(), "", "submit", "--program", "p", "--each-line", "-"); r.code != 0 || r.out != "there was nothing to open\n" {
		t.Errorf("empty file: %+v", r)
	}
}

func TestSubmitObjects(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "tasks.jsonl")
	text := `{"program":"a","source":"rsync:/s/run.sh","input":"1 2","max_fails":3,"timeout":"1h","end_before":"inf"}` + "\n" +
		`{"argv":["x y",""],"start_after":12.5}` + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"submit", "--program", "p", "--timeout", "9", "--from-json", file, "--request-key", "k"}
	for range 2 { // the second time opens nothing
		if ids := b.value(0, args...).(map[string]any)["ids"].([]any); len(ids) != 2 || ids[1] != 2.0 {
			t.Errorf("ids %v, want 1 2", ids)
		}
	}
	one, _ := b.store.Task(t.Context(), 1)
	two, err := b.store.Task(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if one.Program != "a" || one.Fields["max_fails"] != "3" || one.Fields["timeout"] != "3600" {
		t.Errorf("task 1: %v", one.Fields)
	}
	if two.Program != "p" || two.Fields["timeout"] != "9" || two.Fields["start_after"] != "12.5" || two.Fields["argv"] != `["x y",""]` {
		t.Errorf("task 2: %v", two.Fields)
	}
	if last, _ := b.store.LastID(t.Context()); last != 2 {
		t.Errorf("%d tasks, want 2", last)
	}
}

func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ok := `{"program":"p"}` + "\n"
	for _, c := range []struct {
		name  string
		stdin string
		args  string
		say   []string
	}{
		{"no program", "", "", []string{"--program is missing", "name of the program"}},
		{"a path as program", "", "--program ../x", []string{"program", "../x"}},
		{"bad timeout", "", "--program p --timeout soon", []string{"timeout", "soon", "1h30m"}},
		{"no timeout at all", "", "--program p --timeout 0", []string{"timeout", "above 0"}},
		{"negative timeout", "", "--program p --timeout=-5", []string{"timeout", "-5"}},
		{"bad start", "", "--program p --start-after tomorrow", []string{"start_after", "tomorrow", "+10m"}},
		{"start never", "", "--program p --start-after inf", []string{"start_after"}},
		{"not a number", "", "--program p --end-before NaN", []string{"end_before", "NaN"}},
		{"start after end", "", "--program p --start-after 20 --end-before 10", []string{"start_after", "end_before"}},
		{"negative fails", "", "--program p --max-fails=-1", []string{"max_fails", "-1"}},
		{"broken fails", "", "--program p --max-fails 1.5", []string{"max_fails", "1.5"}},
		{"bad fail-on", "", "--program p --fail-on always", []string{"fail_on", "always"}},
		{"two files", "x", "--each-line - --from-json -", []string{"each-line", "from-json"}},
		{"quiet JSON", "", "--program p -q --json", []string{"quiet", "json"}},
		{"no such file", "", "--program p --each-line /nonexistent", []string{"/nonexistent"}},
		{"empty request key", "", "--program p --request-key=", []string{"--request-key"}},
		{"unknown flag", "", "--programm p", []string{"--programm"}},
		{"a line with NUL", "a\nb\x00\n", "--program p --each-line -", []string{"stdin:2", "input", "nothing was opened"}},
		{"broken JSON", ok + "{", "--from-json -", []string{"stdin:2", "JSON object"}},
		{"null", ok + "null", "--from-json -", []string{"stdin:2", "JSON object"}},
		{"two objects in a line", ok + `{"program":"p"}{}`, "--from-json -", []string{"stdin:2", "one object a line"}},
		{"unknown field", ok + ok + `{"programm":"p"}`, "--from-json -", []string{"stdin:3", "programm", "did you mean \"program\"?"}},
		{"number as program", ok + `{"program":7}`, "--from-json -", []string{"stdin:2", "program", "7"}},
		{"text in argv", ok + `{"argv":"x"}`, "--from-json -", []string{"stdin:2", "argv"}},
		{"input and argv", ok + `{"program":"p","argv":[],"input":""}`, "--from-json -", []string{"stdin:2", "exclude"}},
		{"bad value", ok + `{"program":"p","max_fails":-1}`, "--from-json -", []string{"stdin:2", "max_fails", "-1"}},
		{"true as number", ok + `{"program":"p","timeout":true}`, "--from-json -", []string{"stdin:2", "timeout", "true"}},
		{"null as number", ok + `{"program":"p","timeout":null}`, "--from-json -", []string{"stdin:2", "timeout", "null"}},
	} {
		r := b.runWith(t.Context(), c.stdin, append([]string{"submit"}, strings.Fields(c.args)...)...)
		if r.code != 2 {
			t.Errorf("%s: ended with %d, want 2: %s%s", c.name, r.code, r.out, r.err)
		}
		wantText(t, r.err+r.out, c.say...)
	}
	if last, err := b.store.LastID(t.Context()); err != nil || last != 0 {
		t.Errorf("%d tasks were opened, %v", last, err)
	}
}

// What is there already when a key turns out to be that of other tasks is told, and nothing more is opened.
func TestSubmitHalfDone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	three, four := "1\n2\n3\n", "1\n2\n3\n4\n"
	args := []string{"submit", "--program", "p", "--each-line", "-", "--request-key", "k", "--set", "manager.batch_size=2"}
	if r := b.runWith(t.Context(), three, args...); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	r := b.runWith(t.Context(), four, args...)
	if r.code != 2 {
		t.Errorf("ended with %d, want 2", r.code)
	}
	wantText(t, r.err, "only 2 of 4 tasks are there (1-2)", `--request-key "k" was used for other tasks`)
	worktest.Drain(t, b.store, worktest.Echo)
	if last, err := b.store.LastID(t.Context()); err != nil || last != 3 {
		t.Errorf("%d tasks, %v, want 3", last, err)
	}
}
