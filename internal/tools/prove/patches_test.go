package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/tools/trial"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const root = "../../.."

// wanted are the bugs that must not be lost from the list.
var wanted = strings.Fields(`
	asynq-orphan asynq-partial-script bullmq-wedged-block callback-first celery-visibility client-clock
	faktory-ack-without-token faktory-brpop-gap go-redis-double-exec hq-no-pidns in-place-unpack limbo-set
	no-cap no-epoch-fence no-fence no-handling-lease no-history-check no-lease one-page-scan
	river-batch-starvation river-leader-clock setuid-kept shell-only-kill sidekiq-start-only-recovery zipslip-join zrem-gap`)

// Each bug can be brought into the tree as it is, which compiles with it, and the
// tests that are to notice are there. That they do, make prove shows.
func TestLongPatchesAreUpToDate(t *testing.T) {
	t.Parallel()
	all, err := bugs(root)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for i := range all {
		there[all[i].name] = true
		t.Run(all[i].name, func(t *testing.T) {
			t.Parallel()
			checkTest(t, &all[i])
			compile(t, &all[i])
		})
	}
	for _, name := range wanted {
		if !there[name] {
			t.Errorf("the bug %s has no patch", name)
		}
	}
}

// checkTest looks for the test that the pattern names.
func checkTest(t *testing.T, b *bug) {
	t.Helper()
	name, _, _ := strings.Cut(b.suite.Run, "/")
	for _, p := range b.suite.Packages {
		files, err := filepath.Glob(filepath.Join(root, p, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "func "+name+"(") {
				return
			}
		}
	}
	t.Errorf("there is no test %s in %v", name, b.suite.Packages)
}

// compile builds the packages that the patch changes, beside the tree, and lets
// Redis compile the scripts.
func compile(t *testing.T, b *bug) {
	t.Helper()
	broken := t.TempDir()
	for _, name := range b.files() {
		if err := trial.CopyFile(root, broken, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.apply(broken); err != nil {
		t.Fatal(err)
	}
	overlay := map[string]string{}
	var packages []string
	for _, name := range b.files() {
		if filepath.Ext(name) == ".lua" {
			load(t, filepath.Join(broken, name))
			continue
		}
		sound, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		overlay[sound] = filepath.Join(broken, name)
		packages = append(packages, "./"+filepath.Dir(name))
	}
	if len(packages) > 0 {
		build(t, overlay, packages)
	}
}

func load(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// A script is the body of a function; see internal/store/conn/script.go.
	redistest.Shared(t).Do(t, "SCRIPT", "LOAD", "local function script()\n"+string(text)+"\nend")
}

func build(t *testing.T, overlay map[string]string, packages []string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-overlay", file}, packages...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("with it the tree does not compile:\n%s", out)
	}
}
