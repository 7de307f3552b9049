package verbs

import (
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// Without a program the words are a command, which each worker has.
func TestSubmitCommand(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		stdin, flags string
		words        []string
		out          string
		source       string
		want         []string // the words of each task
	}{
		{"", "", []string{"simulate", "--seed", "7"}, "opened task 1: simulate --seed 7\n", "command:simulate", []string{"--seed 7"}},
		{"", "", []string{"/usr/bin/printf", "a b", ""}, "opened task 2: /usr/bin/printf \"a b\" \"\"\n", "command:/usr/bin/printf", []string{`"a b" ""`}},
		{"", "--array 8-9", []string{"simulate", "--seed={}"}, "opened 2 tasks: 3-4, as job j3\n", "command:simulate", []string{"--seed=8", "--seed=9"}},
		{"", "--array 8-9", []string{"seq"}, "opened 2 tasks: 5-6, as job j4\n", "command:seq", []string{"8", "9"}},
		{"a b.wav\r\n\n", "--each-line -", []string{"flac", "-o", "{}.flac", "{}"}, "opened 2 tasks: 7-8, as job j5\n", "command:flac", []string{`-o "a b.wav.flac" "a b.wav"`, `-o .flac ""`}},
		{"echo 'x  y' | wc; exit 3\n# no\n", "--each-line -", nil, "opened 2 tasks: 9-10, as job j6\n", "command:sh", []string{`-c "echo 'x  y' | wc; exit 3"`, `-c "# no"`}},
		{`{"source":"command:du","input":"-s /"}`, "--from-json -", nil, "opened task 11: du -s /\n", "command:du", []string{"-s /"}},
	} {
		before, _ := b.store.LastID(t.Context())
		args := append([]string{"submit"}, strings.Fields(c.flags)...)
		if c.words != nil {
			args = append(append(args, "--"), c.words...)
		}
		r := b.runWith(t.Context(), c.stdin, args...)
		if r.code != 0 || r.out != c.out || r.err != "" {
			t.Errorf("%q: ended with %d, %q, %q; want %q", args, r.code, r.out, r.err, c.out)
		}
		for i, want := range c.want {
			record, err := b.store.Task(t.Context(), before+int64(i)+1)
			if err != nil {
				t.Fatal(err)
			}
			got := task.Decode(record.ID, record.Fields)
			text := task.InputText(got.Input, got.Argv)
			if text != want || got.Source != c.source || got.FailOn != task.FailOnExit || record.Fields["labels"] != task.CommandsLabel {
				t.Errorf("%q: task %d has the words %s, want %s; source %s, fail_on %s, labels %s",
					args, got.ID, text, want, got.Source, got.FailOn, record.Fields["labels"])
			}
		}
	}
	out := b.must("submit", "--program", "p", "--each-line", "testdata/two-lines.txt", "--", "-n", "{}")
	if got, err := b.store.Task(t.Context(), 12); err != nil || got.Program != "p" || got.Fields["argv"] != `["-n","one two"]` {
		t.Errorf("%s opened %v, %v", out, got.Fields, err)
	}
}

func TestSubmitCommandRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("submit", "--program", "p")
	for args, say := range map[string][]string{
		"":                                   {"--program is missing", "a command behind --"},
		"--array 1-3":                        {"--program is missing"},
		"simulate":                           {"--program is missing", "submit -- simulate"},
		"--source rsync:run.sh -- x":         {"--program is missing", "leave out --source"},
		"-- ./simulate 7":                    {"./simulate", "relative path", "absolute path", "--upload"},
		"-- bin/simulate":                    {"relative path"},
		"--pin require -- simulate":          {"each worker runs what it has", "--pin auto"},
		"--workdir shared -- simulate":       {"workdir", "share no directory"},
		"--program p --source command:./sim": {"source", "relative path"},
		"--from-json - -- simulate":          {"--from-json", "together"},
	} {
		r := b.unchanged(append([]string{"submit"}, strings.Fields(args)...)...)
		if r.code != 2 {
			t.Errorf("%s: ended with %d, want 2: %s%s", args, r.code, r.out, r.err)
		}
		wantText(t, r.err+r.out, say...)
	}
}

// submit --wait says what it opened, and ends as wait does; a signal ends the wait and no task.
func TestSubmitWait(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		program worktest.Program
		code    int
		ends    string
	}{
		{worktest.Echo, 0, "2 of 2 tasks have ended: succeeded 2\n"},
		{worktest.Fail, 1, "2 of 2 tasks have ended: failed 2\n"},
	} {
		run := b.start(t.Context(), "submit", "--wait", "--array", "1-2", "--program", "p")
		run.says(t, run.out, "opened 2 tasks")
		worktest.Drain(t, b.store, c.program)
		run.ends(t, c.code)
		wantText(t, run.out.String(), c.ends)
	}
	ctx, send := signalled(syscall.SIGINT)
	run := b.start(ctx, "submit", "--wait", "--array", "1-2", "--program", "p")
	run.says(t, run.out, "opened 2 tasks: 5-6")
	send()
	run.ends(t, 130)
	wantText(t, run.err.String(), "the tasks go on; wait for them with: tdf-manager wait j3")
	if r := b.run("submit", "--wait", "--json", "--", "seq"); r.code != 2 {
		t.Errorf("--wait with --json: %+v", r)
	}
	if last, err := b.store.LastID(t.Context()); err != nil || last != 6 {
		t.Errorf("%d tasks, %v", last, err)
	}
}
