package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/tools/trial"
)

// forgotten is the environment variable that says, in programs and tests built with
// the overlay, whose key's value is forgotten once it was read and checked.
const forgotten = "MUTATE_KEY"

// nothing is the key of a run in which no value is forgotten.
const nothing = "nothing"

// edits are what the overlay changes, in the tree's text: configurations forget the
// value of one key, and tests do not wait long for what will not happen.
var edits = []defect{
	{what: "the value of a key is forgotten", file: "internal/base/config/load.go", old: "\treturn l.file, nil\n}\n", new: "" +
		`	return l.file, l.readDefault(os.Getenv("` + forgotten + `"))
}

func (l *loader) readDefault(name string) error {
	section, key, _ := strings.Cut(name, ".")
	if k, known := l.schema.section(section).key(key); known {
		if f := k.parse(k.fallback); f != nil {
			return l.fault(section, k, setting{}, f)
		}
	}
	return nil
}
`},
	{what: "strings", file: "internal/base/config/load.go", old: "\t\"os\"\n", new: "\t\"os\"\n\t\"strings\"\n"},
	// The password in a file is read before.
	{what: "password_file", file: "internal/base/config/load.go", old: "\tif len(l.problems) == 0 {\n", new: "" +
		`	if name := os.Getenv("` + forgotten + `"); name == "redis.password_file" {
		if err := l.readDefault(name); err != nil {
			return nil, err
		}
	}
	if len(l.problems) == 0 {
`},
	{what: "no patience", file: "internal/testkit/wait/wait.go", old: "func newDeadline(timeout time.Duration) deadline {\n", new: "" +
		`func newDeadline(timeout time.Duration) deadline {
	if os.Getenv("` + forgotten + `") != "" {
		timeout = min(timeout, 6*time.Second)
	}
`},
}

// A bench holds test binaries that were built with the overlay, once for all keys.
type bench struct {
	tree, dir string
}

// newBench builds the tests of the packages. The caller removes dir.
func newBench(tree string, dirs []string) (*bench, error) {
	dir, err := os.MkdirTemp("", "tdf-settings-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	b := &bench{tree, dir}
	if err := b.overlay(); err != nil {
		return b, err
	}
	if err := b.build("build", "-o", b.programs()+"/", "./cmd/..."); err != nil {
		return b, err
	}
	for _, pkg := range dirs {
		if err := b.build("test", "-c", "-o", b.binary(pkg), "./"+pkg); err != nil {
			return b, err
		}
	}
	return b, os.Chmod(b.dir, 0o755) // programs are run by other users, too
}

func (b *bench) build(args ...string) error {
	cmd := exec.Command("go", args...) //nolint:noctx // it ends
	cmd.Dir, cmd.Env = b.tree, b.environ(nothing)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// programs is where tests find those that they start.
func (b *bench) programs() string { return filepath.Join(b.dir, "programs") }

func (b *bench) binary(pkg string) string {
	return filepath.Join(b.dir, strings.ReplaceAll(pkg, "/", "-")+".test")
}

// overlay writes the changed files and the list of them.
func (b *bench) overlay() error {
	root, err := filepath.Abs(b.tree)
	if err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	replace := map[string]string{}
	for i := range edits {
		e := &edits[i]
		from, into := filepath.Join(root, e.file), filepath.Join(b.dir, strings.ReplaceAll(e.file, "/", "-"))
		read := from
		if replace[from] != "" {
			read = into
		}
		text, err := os.ReadFile(read)
		if err != nil {
			return fmt.Errorf("overlay: %w", err)
		}
		broken, err := e.in(text)
		if err != nil {
			return err
		}
		if err := os.WriteFile(into, broken, 0o600); err != nil {
			return fmt.Errorf("overlay: %w", err)
		}
		replace[from] = into
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "overlay.json"), text, 0o600); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	return nil
}

// environ is that of go build, and of tests.
func (b *bench) environ(key string) []string {
	flags := strings.TrimSpace(os.Getenv("GOFLAGS") + " -overlay=" + filepath.Join(b.dir, "overlay.json"))
	return append(os.Environ(), "GOFLAGS="+flags, "TDF_TEST_PROGRAMS="+b.programs(), forgotten+"="+key)
}

// run runs a test while a key is forgotten.
func (b *bench) run(key string, t test) trial.Result {
	//nolint:noctx // it has a timeout
	cmd := exec.Command(b.binary(t.dir), "-test.run", t.pattern, "-test.failfast", "-test.timeout=5m", "-test.v")
	cmd.Dir, cmd.Env = filepath.Join(b.tree, t.dir), b.environ(key)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // for children that hold the output of a test that ended before them
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // mostly nobody is left
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the test itself has passed
	}
	return trial.Judge(string(out), err)
}
