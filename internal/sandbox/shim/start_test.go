package shim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
)

// broken are programs that must not start, by what prepares run.sh: enough to
// show that an error arrives whole by every path. The others are in internal/sandbox/process.
var broken = map[string]struct {
	prepare func(run string) error
	reason  process.Reason
	err     error
	text    string
}{
	"missing":         {func(string) error { return nil }, process.ReasonMissing, os.ErrNotExist, "top level"},
	"not executable":  {put("#!/bin/sh\n", 0o644), process.ReasonNotExecutable, syscall.EACCES, "chmod +x"},
	"carriage return": {put("#!/bin/sh\r\n", 0o755), process.ReasonInterpreter, syscall.ENOENT, `"/bin/sh\r"`},
}

func put(content string, mode os.FileMode) func(string) error {
	return func(run string) error { return os.WriteFile(run, []byte(content), mode) }
}

// paths are the ways a program may take to its execution.
func paths() map[string]Options {
	o := map[string]Options{
		"plain":    {},
		"launcher": {Rlimits: map[string]uint64{"core": 0}},
		"wrapper":  {Wrapper: []string{"nice", "-n", "1"}},
		"both":     {Wrapper: []string{"nice"}, Rlimits: map[string]uint64{"core": 0}},
	}
	if os.Geteuid() == 0 {
		o["user"] = Options{RunAs: "nobody"}
		o["all"] = Options{RunAs: "nobody", Wrapper: []string{"nice"}, Rlimits: map[string]uint64{"core": 0}}
	}
	return o
}

func TestStartErrorSaysWhy(t *testing.T) {
	t.Parallel()
	for name, o := range paths() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, o)
			for name, c := range broken {
				dir := publicDir(t)
				if err := c.prepare(filepath.Join(dir, "run.sh")); err != nil {
					t.Fatal(err)
				}
				r, err := s.Run(context.Background(), Program{Dir: dir, Env: []string{path}})
				e := expectReason(t, name, err, c.reason)
				if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) || e.Path != filepath.Join(dir, "run.sh") {
					t.Errorf("%s: got %v, want %v and %q in it", name, err, c.err, c.text)
				}
				if r.Started || r.ExitCode != -1 {
					t.Errorf("%s: got %+v", name, r)
				}
			}
			// The slot is as good as before.
			if _, text := run(t, s, Program{Dir: public(t, "echo fine")}); text != "fine\n" {
				t.Errorf("got %q", text)
			}
		})
	}
}

func expectReason(t *testing.T, name string, err error, want process.Reason) *process.StartError {
	t.Helper()
	var e *process.StartError
	if !errors.As(err, &e) {
		t.Fatalf("%s: got %v, want a StartError", name, err)
	}
	if e.Reason != want {
		t.Errorf("%s: reason %q, want %q (%v)", name, e.Reason, want, err)
	}
	return e
}

// public is a script that everybody may execute.
func public(t testing.TB, body string) string {
	t.Helper()
	return publish(t, "#!/bin/sh\n"+body+"\n", 0o755)
}

func publish(t testing.TB, content string, mode os.FileMode) string {
	t.Helper()
	dir := publicDir(t)
	hosttest.WriteProgram(t, filepath.Join(dir, "run.sh"), content, mode)
	return dir
}

func TestProgramWithoutShebang(t *testing.T) {
	t.Parallel()
	for name, o := range paths() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, o)
			_, text := run(t, s, Program{Dir: publish(t, "echo \"$0 $# $2\"\n", 0o755), Args: []string{"-x", "b c"}})
			if text != "./run.sh 2 b c\n" {
				t.Errorf("got %q", text)
			}
		})
	}
}

// A program that its user may not execute is not the fault of its interpreter.
func TestDirectoryClosedToTheUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for run_as")
	}
	for _, o := range []Options{{RunAs: "nobody"}, {RunAs: "nobody", Rlimits: map[string]uint64{"core": 0}}} {
		s := open(t, o)
		closed := public(t, ":")
		if err := os.Chmod(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := s.Run(context.Background(), Program{Dir: closed})
		expectReason(t, "directory", err, process.ReasonDirectory)
		_, err = s.Run(context.Background(), Program{Dir: publish(t, "#!/bin/sh\n", 0o744)})
		expectReason(t, "file", err, process.ReasonNotExecutable)
	}
}

func TestLargeArgumentsAndEnvironment(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("x", 100<<10)
	for name, o := range paths() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, o)
			p := Program{Dir: public(t, `echo $# ${#1} ${#4} ${#BIG}`), Args: []string{word, word, word, word}, Env: []string{path, "BIG=" + word}}
			if _, text := run(t, s, p); text != "4 102400 102400 102400\n" {
				t.Errorf("got %q", text)
			}
			p.Args = make([]string, 64)
			for i := range p.Args {
				p.Args[i] = word
			}
			_, err := s.Run(context.Background(), p)
			expectReason(t, "all words", err, process.ReasonArguments)
			if !errors.Is(err, syscall.E2BIG) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A NUL ends a word of the request, so it must not get that far.
func TestProgramThatCannotBePassedOn(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	_, err := s.Run(context.Background(), Program{Dir: script(t, ":"), Args: []string{"a", "b\x00"}})
	expectReason(t, "NUL", err, process.ReasonArguments)
	_, err = s.Run(context.Background(), Program{Dir: filepath.Join(t.TempDir(), "no")})
	expectReason(t, "no directory", err, process.ReasonDirectory)
}

// A launcher tells that run.sh is open for writing as well as it tells other errors.
func TestBusyProgramIsTriedAgain(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	dir := install(t, string(content), 0o755)
	s := open(t, Options{Rlimits: map[string]uint64{"core": 0}})
	writer, err := os.OpenFile(filepath.Join(dir, "run.sh"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Run(context.Background(), Program{Dir: dir})
	expectReason(t, "busy", err, process.ReasonBusy)
	time.AfterFunc(10*time.Millisecond, func() { _ = writer.Close() })
	if r, err := s.Run(context.Background(), Program{Dir: dir}); r.ExitCode != 0 || err != nil {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A command arrives whole by every path, and is looked up with the rights of its user.
func TestCommandIsRun(t *testing.T) {
	t.Parallel()
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	hosttest.WriteProgram(t, filepath.Join(closed, "printf"), "#!/bin/sh\necho wrong\n", 0o755)
	for name, o := range paths() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := []string{path}
			if o.RunAs != "" {
				env = []string{"PATH=" + closed + ":" + strings.TrimPrefix(path, "PATH=")}
			}
			s := open(t, o)
			dir := publicDir(t)
			if _, text := run(t, s, Program{Dir: dir, File: "printf", Args: []string{"%s|", "a b", "", "\xff"}, Env: env}); text != "a b||\xff|" {
				t.Errorf("got %q", text)
			}
			_, err := s.Run(context.Background(), Program{Dir: dir, File: "no-such-command", Env: env})
			if e := expectReason(t, name, err, process.ReasonUnknown); e.Path != "no-such-command" || !strings.Contains(err.Error(), "install it") {
				t.Errorf("got %v", err)
			}
		})
	}
}
