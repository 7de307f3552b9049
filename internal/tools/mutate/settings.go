package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/tools/trial"
)

// acceptance is where the tests of the settings are named, in the rows of a table of
// their own: keys in full, as in `worker.slots`, and their tests.
const acceptance = "docs/ACCEPTANCE.md"

var (
	settingRow = regexp.MustCompile("(?m)^\\| ((?:`(?:redis|tdf|http|server|worker|manager|task_defaults)\\.[a-z_]+`,? )+)\\|(.*)\\|$")
	namedTest  = regexp.MustCompile("`([a-z][a-zA-Z0-9_/-]*)\\.((?:Test|Example)\\w*)((?:/[^`]+)?)`")
)

// A test is one that is named in the document.
type test struct {
	// dir is its package, from the root of the tree, pattern what -test.run takes.
	dir, pattern string
}

// A setting is a key of the configuration, and the tests that are to notice when a
// program reads its default instead.
type setting struct {
	key   string
	tests []test
}

// settings are all keys of the configuration with their tests. A key without one is an
// error, and so is a row for any other name.
func settings(document string) ([]setting, error) {
	rows := map[string][]test{}
	for _, row := range settingRow.FindAllStringSubmatch(document, -1) {
		for _, name := range namedTest.FindAllStringSubmatch(row[2], -1) {
			for key := range strings.SplitSeq(row[1], ",") {
				key = strings.Trim(key, "` ")
				rows[key] = append(rows[key], test{name[1], pattern(name[2] + name[3])})
			}
		}
	}
	all := make([]setting, 0, len(config.Keys()))
	var problems []error
	for _, key := range config.Keys() {
		if len(rows[key]) == 0 {
			problems = append(problems, fmt.Errorf(
				"no test of %s is named in %s: write one that is red when a program reads the default, and a row `%s`",
				key, acceptance, key))
		}
		all = append(all, setting{key, rows[key]})
		delete(rows, key)
	}
	for key := range rows {
		problems = append(problems, fmt.Errorf("%s has a row for %s, which is not a key", acceptance, key))
	}
	return all, errors.Join(problems...)
}

// pattern is the -test.run of a test and its subtest.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// trySettings prints what notices that a key's value is forgotten, a row for each key.
// It returns an error if nothing does, or if a test fails anyway.
func trySettings(out io.Writer, tree, only string) error {
	document, err := os.ReadFile(filepath.Join(tree, acceptance))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	all, err := settings(string(document))
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(s setting) bool { return !strings.Contains(s.key, only) })
	if len(all) == 0 {
		return nil
	}
	var dirs []string
	for _, s := range all {
		for _, t := range s.tests {
			dirs = append(dirs, t.dir)
		}
	}
	slices.Sort(dirs)
	began := time.Now()
	b, err := newBench(tree, slices.Compact(dirs))
	if b != nil {
		defer func() { _ = os.RemoveAll(b.dir) }()
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Built in %.0f s.\n\n| key | found by | seconds |\n|---|---|---|\n", time.Since(began).Seconds())
	survived := b.tryAll(out, all)
	fmt.Fprintf(out, "\n%d keys in %.0f s.\n", len(all), time.Since(began).Seconds())
	if len(survived) > 0 {
		slices.Sort(survived)
		return fmt.Errorf("no test notices that the value is forgotten, or one fails without that: %s", strings.Join(survived, ", "))
	}
	return nil
}

// atOnce is how many keys are tried beside one another: tests wait more than they work.
const atOnce = 4

func (b *bench) tryAll(out io.Writer, all []setting) (survived []string) {
	var (
		mu    sync.Mutex
		each  sync.WaitGroup
		slots = make(chan struct{}, atOnce)
	)
	for _, s := range all {
		slots <- struct{}{}
		each.Go(func() {
			defer func() { <-slots }()
			began := time.Now()
			found, by := b.try(s)
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "| `%s` | %s | %.1f |\n", s.key, by, time.Since(began).Seconds())
			if !found {
				survived = append(survived, s.key)
			}
		})
	}
	each.Wait()
	return survived
}

// try looks for the first of a key's tests that is red without its value, and green
// with it.
func (b *bench) try(s setting) (found bool, by string) {
	for _, t := range s.tests {
		r := b.run(s.key, t)
		if r.Green && strings.Contains(r.Output, "--- SKIP: ") && os.Getenv("TDF_NO_SKIPS") == "" {
			return true, fmt.Sprintf("nothing, as `%s` in %s is skipped here", t.pattern, t.dir)
		}
		if r.Green {
			continue
		}
		if sound := b.run(nothing, t); !sound.Green {
			return false, fmt.Sprintf("**`%s` in %s fails anyway**:\n%s", sound.Found, t.dir, sound.Output)
		}
		return true, fmt.Sprintf("`%s` in %s", r.Found, t.dir)
	}
	return false, "**nothing: it survived**"
}

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
	changed, replace := map[string][]byte{}, map[string]string{}
	for i := range edits {
		e := &edits[i]
		text := changed[e.file]
		if text == nil {
			if text, err = os.ReadFile(filepath.Join(root, e.file)); err != nil {
				return fmt.Errorf("overlay: %w", err)
			}
		}
		if changed[e.file], err = e.in(text); err != nil {
			return err
		}
	}
	for file, text := range changed {
		into := filepath.Join(b.dir, strings.ReplaceAll(file, "/", "-"))
		replace[filepath.Join(root, file)] = into
		if err := os.WriteFile(into, text, 0o600); err != nil {
			return fmt.Errorf("overlay: %w", err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	return os.WriteFile(filepath.Join(b.dir, "overlay.json"), text, 0o600)
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
