package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// broken describes a program that must not start, by what prepares it.
var broken = []struct {
	name    string
	prepare func(t *testing.T, run string)
	reason  Reason
	err     error
	text    string
}{
	{"missing", func(*testing.T, string) {}, ReasonMissing, os.ErrNotExist, "top level"},
	{"directory", func(t *testing.T, run string) { mkdir(t, run) }, ReasonNotFile, syscall.EACCES, "drwx"},
	{"not executable", put("#!/bin/sh\n", 0o644), ReasonNotExecutable, syscall.EACCES, "chmod +x"},
	{"interpreter missing", put("#!/no/such/sh\n", 0o755), ReasonInterpreter, syscall.ENOENT, `"/no/such/sh"`},
	{"carriage return", put("#!/bin/sh\r\n", 0o755), ReasonInterpreter, syscall.ENOENT, `"/bin/sh\r"`},
	{"interpreter not executable", put("#!/etc/passwd\n", 0o755), ReasonInterpreter, syscall.EACCES, `"/etc/passwd"`},
	{"interpreter is a directory", put("#! /etc x\n", 0o755), ReasonInterpreter, syscall.EACCES, `"/etc"`},
	{"foreign binary", put("\x7fELF\x02\x00\x00\x00", 0o755), ReasonFormat, syscall.ENOEXEC, "#!/bin/sh"},
	{"dangling link", func(t *testing.T, run string) { symlink(t, "gone", run) }, ReasonMissing, os.ErrNotExist, ""},
	{"link to itself", func(t *testing.T, run string) { symlink(t, programFile, run) }, ReasonMissing, syscall.ELOOP, ""},
	{"pipe", func(t *testing.T, run string) { mkfifo(t, run) }, ReasonNotFile, syscall.EACCES, "prwx"},
}

func put(content string, mode os.FileMode) func(*testing.T, string) {
	return func(t *testing.T, run string) { write(t, run, content, mode) }
}

func mkdir(t *testing.T, name string) {
	t.Helper()
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func mkfifo(t *testing.T, name string) {
	t.Helper()
	if err := syscall.Mkfifo(name, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestStartErrorSaysWhy(t *testing.T) {
	t.Parallel()
	for _, c := range broken {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.prepare(t, filepath.Join(dir, programFile))
			_, err := Run(context.Background(), Spec{Dir: dir})
			e := expectReason(t, err, c.reason)
			if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v and %q in it", err, c.err, c.text)
			}
			if e.Path != filepath.Join(dir, programFile) {
				t.Errorf("Path is %q", e.Path)
			}
		})
	}
}

// expectReason fails unless err is a StartError of this reason.
func expectReason(t *testing.T, err error, want Reason) *StartError {
	t.Helper()
	var e *StartError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a StartError", err)
	}
	if e.Reason != want {
		t.Errorf("reason %q, want %q (%v)", e.Reason, want, err)
	}
	return e
}

func TestBadSpecIsRefused(t *testing.T) {
	t.Parallel()
	dir := script(t, ":")
	for name, c := range map[string]struct {
		spec   Spec
		reason Reason
		text   string
	}{
		"no directory":      {Spec{}, ReasonSpec, "Dir"},
		"directory missing": {Spec{Dir: dir + "/no"}, ReasonDirectory, "no such file"},
		"directory is file": {Spec{Dir: dir + "/" + programFile}, ReasonDirectory, "not a directory"},
		"negative timeout":  {Spec{Dir: dir, Timeout: -1}, ReasonSpec, "-1ns"},
		"negative grace":    {Spec{Dir: dir, Grace: -1}, ReasonSpec, "Grace"},
		"negative limit":    {Spec{Dir: dir, OutputLimit: -1}, ReasonSpec, "OutputLimit is -1"},
		"huge limit":        {Spec{Dir: dir, OutputLimit: MaxOutputLimit + 1}, ReasonSpec, "536870912"},
		"same files":        {Spec{Dir: dir, Stdout: "a/../b", Stderr: "b"}, ReasonSpec, "a/../b"},
		"NUL in argument":   {Spec{Dir: dir, Args: []string{"a", "b\x00"}}, ReasonArguments, "argument 2"},
		"NUL in variable":   {Spec{Dir: dir, Env: []string{"TDF_INPUT=\x00"}}, ReasonArguments, `"TDF_INPUT"`},
		"one huge argument": {Spec{Dir: dir, Args: []string{strings.Repeat("x", 1<<17)}}, ReasonArguments, "too long"},
		"no TempDir":        {Spec{Dir: dir, TempDir: dir + "/no"}, ReasonOutput, dir + "/no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := Run(context.Background(), c.spec)
			expectReason(t, err, c.reason)
			if !strings.Contains(err.Error(), c.text) || r.ExitCode != -1 {
				t.Errorf("got %+v, %v, want %q in it", r, err, c.text)
			}
		})
	}
}

// The original ran programs through a shell, which takes a file that the kernel
// cannot execute for a script.
func TestProgramWithoutShebang(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"plain":   "echo \"$0 $# $2\"\n",
		"comment": "# no interpreter\necho \"$0 $# $2\"\n",
		"bare #!": "#!\necho \"$0 $# $2\"\n",
	} {
		r := mustRun(t, Spec{Dir: program(t, content), Args: []string{"-x", "b c"}})
		if string(r.Stdout) != "./run.sh 2 b c\n" || len(r.Stderr) != 0 {
			t.Errorf("%s: stdout %q, stderr %q", name, r.Stdout, r.Stderr)
		}
	}
	if r := mustRun(t, Spec{Dir: program(t, "")}); r.ExitCode != 0 || len(r.Stdout)+len(r.Stderr) != 0 {
		t.Errorf("empty run.sh: %+v", r)
	}
}

// A writer that is about to close run.sh is waited for; one that stays is named.
func TestBusyProgramIsTriedAgain(t *testing.T) {
	t.Parallel()
	dir := binary(t)
	writer, err := os.OpenFile(filepath.Join(dir, programFile), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(context.Background(), Spec{Dir: dir})
	expectReason(t, err, ReasonBusy)
	time.AfterFunc(10*time.Millisecond, func() { _ = writer.Close() })
	if r := mustRun(t, Spec{Dir: dir}); r.ExitCode != 0 {
		t.Errorf("got %+v", r)
	}
}

func TestCancelEndsTheWaitForABusyProgram(t *testing.T) {
	t.Parallel()
	dir := binary(t)
	writer, err := os.OpenFile(filepath.Join(dir, programFile), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	begin := time.Now()
	_, err = forkExec(ctx, []string{filepath.Join(dir, programFile)}, &syscall.ProcAttr{})
	if !errors.Is(err, syscall.ETXTBSY) || time.Since(begin) > 100*time.Millisecond {
		t.Errorf("got %v after %v; all pauses together take 127ms", err, time.Since(begin))
	}
}

// binary is a program that the kernel refuses to execute while it is written to.
func binary(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	return program(t, string(content))
}
