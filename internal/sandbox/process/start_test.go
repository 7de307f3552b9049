package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestArgumentsArePassedExactly(t *testing.T) {
	t.Parallel()
	args := []string{"", "a b", "-x", "$(id) * ~", `'q' "d" \`, "line\nend", "\xff\x01", "ü"}
	want := "./run.sh\x00" + strings.Join(args, "\x00") + "\x00"
	for name, content := range map[string]string{
		"interpreter": "#!/bin/sh\nprintf '%s\\0' \"$0\" \"$@\"\n",
		"shell":       "printf '%s\\0' \"$0\" \"$@\"\n",
	} {
		dir := program(t, content)
		for way, wrapper := range map[string][]string{"plain": nil, "wrapper": {"/usr/bin/env", "-u", "X"}} {
			if got := run(t, Command{Dir: dir, Args: args, Wrapper: wrapper}); got != want {
				t.Errorf("%s, %s: got %q", name, way, got)
			}
		}
	}
}

// The original ran programs through a shell, which takes a file that the kernel
// cannot execute for a script.
func TestProgramWithoutShebang(t *testing.T) {
	t.Parallel()
	const body = "echo \"$0 $# $2\"\n"
	for name, content := range map[string]string{
		"plain":    body,
		"comment":  "# no interpreter\n" + body,
		"bare #!":  "#!\n" + body,
		"blank #!": "#! \t\n" + body,
		"binary":   body + "exit\n\x00\xff", // an archive that unpacks itself
	} {
		for _, wrapper := range [][]string{nil, {"/usr/bin/env"}} {
			got := run(t, Command{Dir: program(t, content), Args: []string{"-x", "b c"}, Wrapper: wrapper})
			if got != "./run.sh 2 b c\n" {
				t.Errorf("%s, wrapper %q: got %q", name, wrapper, got)
			}
		}
	}
	if got := run(t, Command{Dir: program(t, "")}); got != "" {
		t.Errorf("empty run.sh: %q", got)
	}
}

// A writer that is about to close run.sh is waited for; one that stays is named.
func TestBusyProgramIsTriedAgain(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("/bin/true")
	must(t, err)
	c := Command{Dir: program(t, string(content))}
	writer, err := os.OpenFile(filepath.Join(c.Dir, programFile), os.O_WRONLY, 0)
	must(t, err)
	defer func() { _ = writer.Close() }()

	err = startFails(t, c, c.forkExec(nil))
	expectReason(t, err, ReasonBusy)
	if !errors.Is(err, syscall.ETXTBSY) || !strings.Contains(err.Error(), "atomic rename") {
		t.Errorf("got %v", err)
	}

	tries, execute := 0, c.forkExec(nil)
	pid, err := c.Start(func(file string, argv []string) (int, error) {
		if tries++; tries == 3 {
			_ = writer.Close()
		}
		return execute(file, argv)
	})
	must(t, err)
	if status := await(t, pid); status != 0 || tries < 3 {
		t.Errorf("status %#x after %d tries", status, tries)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command Command
		reason  Reason
		text    string
	}{
		"no directory":     {Command{}, ReasonSpec, `the field Dir is ""`},
		"NUL in directory": {Command{Dir: "a\x00b"}, ReasonSpec, `the field Dir is "a\x00b"`},
		"NUL in argument":  {Command{Dir: "d", Args: []string{"a", "b\x00"}}, ReasonArguments, "argument 2"},
		"NUL in variable":  {Command{Dir: "d", Env: []string{"A=", "TDF_INPUT=\x00"}}, ReasonArguments, `"TDF_INPUT"`},
	} {
		err := c.command.Check()
		expectReason(t, err, c.reason)
		if !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %q in it", name, err, c.text)
		}
	}
	if err := (&Command{Dir: "d", Args: []string{"", "\xff"}, Env: []string{"A=\x01"}}).Check(); err != nil {
		t.Errorf("got %v", err)
	}
}

// A wrapper need not know what to do with a script without a #! line.
func TestWrapperIsGivenTheShell(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"echo":           "/wrap -x /bin/sh ./run.sh a",
		"#!\necho":       "/wrap -x /bin/sh ./run.sh a",
		"#!/bin/sh":      "/wrap -x ./run.sh a",
		"\x7fELF":        "/wrap -x ./run.sh a",
		"\x00\x01\necho": "/wrap -x ./run.sh a",
	} {
		c := Command{Dir: program(t, content), Args: []string{"a"}, Wrapper: []string{"/wrap", "-x"}}
		var got string
		pid, err := c.Start(func(file string, argv []string) (int, error) {
			got = strings.Join(argv, " ")
			if file != argv[0] {
				t.Errorf("executed %q as %q", file, argv)
			}
			return 7, nil
		})
		if got != want || pid != 7 || err != nil {
			t.Errorf("%q: executed %q, want %q; got %d, %v", content, got, want, pid, err)
		}
	}
}

// A name is looked up in the PATH of the program, not of this process, and never in the working directory.
func TestCommandIsFound(t *testing.T) {
	t.Parallel()
	dir, bin, other := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(bin, "sim"), "#!/bin/sh\necho \"sim $# $1\"\n", 0o755)
	must(t, os.Symlink("/bin/sh", filepath.Join(bin, "shell")))
	write(t, filepath.Join(dir, "sim"), "#!/bin/sh\necho wrong\n", 0o755)
	write(t, filepath.Join(other, "sim"), "#!/bin/sh\necho not executable\n", 0o644)
	write(t, filepath.Join(bin, "plain"), "echo \"plain $1\"\n", 0o755)
	env := []string{"PATH=:.:" + other + ":" + bin}
	for _, wrapper := range [][]string{nil, {"/usr/bin/env"}} {
		for file, want := range map[string]string{
			"sim": "sim 1 a b\n", filepath.Join(bin, "sim"): "sim 1 a b\n", "plain": "plain a b\n",
		} {
			if got := run(t, Command{Dir: dir, File: file, Args: []string{"a b"}, Env: env, Wrapper: wrapper}); got != want {
				t.Errorf("%s, wrapper %q: got %q, want %q", file, wrapper, got, want)
			}
		}
		for file, c := range map[string]struct {
			reason Reason
			says   string
		}{
			"nothing": {ReasonUnknown, "not found in PATH"}, "/no/such/command": {ReasonUnknown, "no such file"}, bin: {ReasonUnknown, "drwx"},
			filepath.Join(other, "sim"): {ReasonNotExecutable, "chmod +x"},
		} {
			c1 := Command{Dir: dir, File: file, Env: env, Wrapper: wrapper}
			err := startFails(t, c1, c1.forkExec(nil))
			if e := expectReason(t, err, c.reason); e.Path != file || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, wrapper %q: %v lacks %q", file, wrapper, err, c.says)
			}
		}
	}
	if got := run(t, Command{Dir: dir, File: "shell", Args: []string{"-c", "echo $0"}, Env: env}); got != "shell\n" {
		t.Errorf("it was called %q", got)
	}
	elsewhere := []string{"PATH=" + other}
	if got := run(t, Command{Dir: dir, File: "sim", Path: bin, Env: elsewhere}); got != "sim 0 \n" {
		t.Errorf("in another path than that of the program: %q", got)
	}
	if got := run(t, Command{Dir: dir, File: "true"}); got != "" {
		t.Errorf("without PATH: %q", got)
	}
}
