package process

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// broken are programs that must not start, by what prepares run.sh.
var broken = map[string]struct {
	prepare func(run string) error
	reason  Reason
	err     error
	text    string
}{
	"missing":             {func(string) error { return nil }, ReasonMissing, os.ErrNotExist, "top level"},
	"directory":           {func(run string) error { return os.Mkdir(run, 0o755) }, ReasonNotFile, syscall.EACCES, "drwx"},
	"pipe":                {func(run string) error { return syscall.Mkfifo(run, 0o755) }, ReasonNotFile, syscall.EACCES, "prwx"},
	"dangling link":       {func(run string) error { return os.Symlink("gone", run) }, ReasonMissing, os.ErrNotExist, "top level"},
	"link to itself":      {func(run string) error { return os.Symlink(programFile, run) }, ReasonMissing, syscall.ELOOP, "top level"},
	"not executable":      {put("#!/bin/sh\n", 0o644), ReasonNotExecutable, syscall.EACCES, "chmod +x"},
	"interpreter missing": {put("#!/no/such/sh\n", 0o755), ReasonInterpreter, syscall.ENOENT, `"/no/such/sh"`},
	"carriage return":     {put("#!/bin/sh\r\n", 0o755), ReasonInterpreter, syscall.ENOENT, `"/bin/sh\r"`},
	"interpreter not executable": {
		put("#!/etc/passwd\n", 0o755), ReasonInterpreter, syscall.EACCES, `"/etc/passwd"`,
	},
	"interpreter is a directory": {put("#! /etc x\n", 0o755), ReasonInterpreter, syscall.EACCES, `"/etc"`},
}

func put(content string, mode os.FileMode) func(string) error {
	return func(run string) error { return os.WriteFile(run, []byte(content), mode) }
}

// A wrapper would start and report the same in its own way.
func TestStartErrorSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range broken {
		for way, wrapper := range map[string][]string{"plain": nil, "wrapper": {"/usr/bin/env"}} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				path := filepath.Join(dir, programFile)
				must(t, c.prepare(path))
				command := Command{Dir: dir, Wrapper: wrapper}
				err := startFails(t, command, command.forkExec(nil))
				e := expectReason(t, err, c.reason)
				if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v, want %v and %q in it", err, c.err, c.text)
				}
				if e.Path != path {
					t.Errorf("Path is %q", e.Path)
				}
			})
		}
	}
}

func TestCommandThatCannotBeExecuted(t *testing.T) {
	t.Parallel()
	dir := program(t, "#!/bin/sh\n")
	long := strings.Repeat("x", 128<<10)
	for name, c := range map[string]struct {
		command Command
		reason  Reason
		err     error
		text    string
	}{
		"directory missing": {Command{Dir: dir + "/no"}, ReasonDirectory, os.ErrNotExist, "install the program again"},
		"directory is file": {Command{Dir: dir + "/" + programFile}, ReasonDirectory, syscall.ENOTDIR, programFile},
		"foreign binary":    {Command{Dir: program(t, "\x7fELF\x02\x00\x00\x00")}, ReasonFormat, syscall.ENOEXEC, "#!/bin/sh"},
		"long argument":     {Command{Dir: dir, Args: []string{long}}, ReasonArguments, syscall.E2BIG, "in a file"},
		"long variable":     {Command{Dir: dir, Env: []string{"X=" + long}}, ReasonArguments, syscall.E2BIG, "in a file"},
		"wrapper missing": {
			Command{Dir: dir, Wrapper: []string{"/no/such"}}, ReasonWrapper, os.ErrNotExist, `"/no/such"`,
		},
		"long argument behind a wrapper": {
			Command{Dir: dir, Wrapper: []string{"/usr/bin/env"}, Args: []string{long}}, ReasonArguments, syscall.E2BIG, "in a file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := startFails(t, c.command, c.command.forkExec(nil))
			expectReason(t, err, c.reason)
			if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v and %q in it", err, c.err, c.text)
			}
		})
	}
}

// What no test can bring about at will is told by the errno alone.
func TestErrnoOfAGoodProgram(t *testing.T) {
	t.Parallel()
	dir := program(t, "\x7fELF")
	for errno, want := range map[syscall.Errno]Reason{
		syscall.EAGAIN: ReasonResources,
		syscall.ENOMEM: ReasonResources,
		syscall.EMFILE: ReasonResources,
		syscall.ENFILE: ReasonResources,
		syscall.ENOENT: ReasonInterpreter, // the dynamic loader
		syscall.EPERM:  ReasonNotExecutable,
		syscall.EIO:    ReasonOther,
	} {
		t.Run(errno.Error(), func(t *testing.T) {
			t.Parallel()
			execute := func(string, []string) (int, error) { return 0, errno }
			err := startFails(t, Command{Dir: dir}, execute)
			expectReason(t, err, want)
			if !errors.Is(err, errno) {
				t.Errorf("got %v, want %v", err, errno)
			}
			if want == ReasonResources {
				expectReason(t, startFails(t, Command{Dir: dir, Wrapper: []string{"/usr/bin/env"}}, execute), want)
			}
		})
	}
}

// An Execute that knows the reason is believed.
func TestReasonGivenByExecute(t *testing.T) {
	t.Parallel()
	dir := program(t, "")
	given := &StartError{Reason: ReasonLimits, Err: syscall.EPERM}
	err := startFails(t, Command{Dir: dir}, func(string, []string) (int, error) { return 0, given })
	e := expectReason(t, err, ReasonLimits)
	if e.Path != filepath.Join(dir, programFile) || !errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), "run_as") {
		t.Errorf("got %v", err)
	}
}

// Diagnosing happens with the rights of the program's user.
func TestDiagnosisIsMadeAsTheUser(t *testing.T) {
	t.Parallel()
	for _, wrapper := range [][]string{nil, {"/usr/bin/env"}} {
		dir := t.TempDir()
		c := Command{Dir: dir, Wrapper: wrapper, As: func(diagnosis func()) {
			must(t, put("#!/no/such\n", 0o755)(filepath.Join(dir, programFile)))
			diagnosis()
		}}
		execute := func(string, []string) (int, error) { return 0, syscall.ENOENT }
		expectReason(t, startFails(t, c, execute), ReasonInterpreter)
	}
}

// Each reason has a remedy, unless the error itself says what to do or nobody knows; each remedy is for a reason that exists.
func TestEachReasonHasARemedy(t *testing.T) {
	t.Parallel()
	without := []Reason{ReasonSpec, ReasonOther}
	reasons := declaredReasons(t)
	for _, r := range reasons {
		if has := remedies[r] != ""; has == slices.Contains(without, r) {
			t.Errorf("reason %q has a remedy: %v", r, has)
		}
	}
	for r := range maps.Keys(remedies) {
		if !slices.Contains(reasons, r) {
			t.Errorf("there is a remedy for %q, which is no reason", r)
		}
	}
}

// declaredReasons are the constants of type Reason.
func declaredReasons(t *testing.T) (reasons []Reason) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "diagnose.go", nil, 0)
	must(t, err)
	for n := range ast.Preorder(file) {
		c, ok := n.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if kind, ok := c.Type.(*ast.Ident); ok && kind.Name == "Reason" {
			for _, v := range c.Values {
				text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				must(t, err)
				reasons = append(reasons, Reason(text))
			}
		}
	}
	if len(reasons) < len(remedies) {
		t.Fatalf("found the reasons %q only", reasons)
	}
	return reasons
}
