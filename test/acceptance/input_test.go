package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// echoWords writes the words it gets, each with a length before and a line end
// after it, and what it finds in TDF_INPUT.
const echoWords = `echo $#; for w in "$@"; do printf '%s=' ${#w}; printf '%s\n' "$w"; done
[ -z "${TDF_INPUT+x}" ] || printf 'input=%s' "$TDF_INPUT"`

// words is what echoWords writes.
func words(args []string, input string) string {
	var out strings.Builder
	out.WriteString(id2text(int64(len(args))) + "\n")
	for _, a := range args {
		out.WriteString(id2text(int64(len(a))) + "=" + a + "\n")
	}
	return out.String() + "input=" + input
}

// F4: the words of an input, and the arguments of argv, reach run.sh as they
// are; no shell sees them. What no program can be given is the round's error.
func TestInputIsNeverInterpreted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.worker(t, "w")
	pwn := filepath.Join(w.dir, "pwn")
	hostile := []string{`"a b"`, "'c", ";", "touch", pwn, "$(touch", pwn + ")", "`id`", "&&", "-rf", "--", "*", "$HOME", `\n`, "ä€😀"}
	cases := map[string]struct {
		input string
		argv  []string
		want  []string // words
	}{
		"words":          {strings.Join(hostile, " "), nil, strings.Split(strings.Join(hostile, " "), " ")},
		"blanks":         {"  a\t b\nc\r\n d ", nil, []string{"a", "b", "c\r", "d"}},
		"empty":          {"", nil, nil},
		"only blanks":    {" \n\t ", nil, nil},
		"argv":           {"", append(hostile, "", " ", "a\nb", "-n"), append(hostile, "", " ", "a\nb", "-n")},
		"argv empty":     {"ignored words", []string{}, nil},
		"almost 128 KiB": {strings.Repeat("x", 128<<10-len("TDF_INPUT=")-1), nil, []string{strings.Repeat("x", 128<<10-len("TDF_INPUT=")-1)}},
		"invalid UTF-8":  {"\xff\xfe \xc3\x28", nil, []string{"\xff\xfe", "\xc3\x28"}},
	}
	ids := map[string]int64{}
	for name, c := range cases {
		ids[name] = w.plant(t, w.script(t, "p", "export LC_ALL=C\n"+echoWords), c.input, c.argv)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			checkFields(t, w.await(t, ids[name], sm.Executed), map[string]string{"0:output": words(c.want, c.input), "0:error": ""})
		})
	}
	if _, err := os.Stat(pwn); err == nil {
		t.Error("a shell has run a part of an input")
	}
}

// F4: words that the system cannot pass on.
func TestImpossibleInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.worker(t, "w")
	for name, c := range map[string]struct {
		input string
		argv  []string
		want  string
	}{
		"NUL in input":     {"a\x00b", nil, "NUL"},
		"NUL in argv":      {"", []string{"a", "b\x00c"}, "NUL"},
		"more than 128KiB": {strings.Repeat("x", 128<<10), nil, "too long"},
		"argv too long":    {"", []string{strings.Repeat("x", 128<<10)}, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			id := w.plant(t, w.script(t, "p", echoWords), c.input, c.argv)
			task := w.await(t, id, sm.Executed)
			checkFields(t, task, map[string]string{"0:output": "", "0:exit_code": "-"})
			contains(t, "error", task.Fields["0:error"], c.want)
		})
	}
	checkFields(t, w.await(t, w.open(t, w.script(t, "p", echoWords))[0], sm.Executed), map[string]string{"0:error": ""})
	if worker.Ended() {
		t.Error("the worker has ended")
	}
}

// plant opens a task as a foreign manager may, with any bytes as its input.
func (w *world) plant(t *testing.T, spec task.Spec, input string, argv []string) int64 {
	t.Helper()
	return w.Open(t, storetest.Spec(func(s *task.Definition) {
		storetest.SetArgv(s, argv...)
		storetest.Set(s, "program", spec.Program, "source", spec.Source, "input", input)
	}))[0]
}

// F8: a program that asks a terminal or reads its stdin is refused at once.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=1")
	w.worker(t, "w")
	spec := w.script(t, "p", `read answer && echo "read: $answer"; cat; echo "stdin: $?"
(: < /dev/tty) 2>/dev/null; echo "tty: $?"; tty; ps -o tty= -p $$ 2>/dev/null; [ -t 0 ] || echo none`)
	id := w.open(t, spec)[0]
	task := w.await(t, id, sm.Executed)
	out := task.Fields["0:output"]
	if !strings.HasPrefix(out, "stdin: 0\ntty: 2\nnot a tty\n") && !strings.HasPrefix(out, "stdin: 0\ntty: 1\nnot a tty\n") ||
		!strings.HasSuffix(out, "none\n") {
		t.Errorf("the program wrote %q", out)
	}
	within(t, "a program that asks", task.Current.Running, task.Current.Executed, 5*sm.Second)
}
