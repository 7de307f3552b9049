package acceptance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// manage runs tdf-manager and returns what it prints.
func (w *world) manage(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, code := run(t, w.dir, append([]string{program(t, "tdf-manager"), "--config", w.cfg}, args...)...)
	if code != want {
		t.Fatalf("tdf-manager %v ended with %d, want %d:\n%s%s", args, code, want, stdout, stderr)
	}
	return stdout, stderr
}

// The whole record of a round, as show prints it.
func TestRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "node=some-host", "fetch_max_entries=10")
	w.all(t)
	spec := w.script(t, "p", `i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo done; exit 3`)
	id := w.open(t, spec)[0]
	task := w.archived(t, id, sm.Failed)
	text, err := os.ReadFile(strings.TrimPrefix(spec.Source, "rsync:"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	out, _ := w.manage(t, 0, "show", id2text(id))
	for _, want := range []string{
		`round 0, worker w, exit code 3`, `  open\n`, `  running\n`, `  executed\n`, `  failure\n`, `  failed\n`, `  archived\n`,
		`node +some-host\n`, `incarnation +1\n`, `claim +` + task.Fields["0:claim"], `program +sha256 ` + hex.EncodeToString(sum[:]),
		`cpu time +[0-9.]+(m|µ)?s user, [0-9.]+(m|µ)?s system\n`, `max memory +[0-9]{6,} bytes\n`,
		`output \(5 bytes, sha256 [0-9a-f]{64}\)\n +done\n`, `error \(`, `exit status 3`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("show lacks %q", want)
		}
	}
	killed := w.archived(t, w.open(t, w.script(t, "q", "kill -9 $$"))[0], sm.Failed)
	checkFields(t, killed, map[string]string{"0:signal": "killed", "0:exit_code": "-", "0:user_time": "*", "0:max_memory": "*"})
	if t.Failed() {
		t.Log(out)
	}
}

// keep_rounds: of five rounds the first and the last keep what they wrote, the
// others say that it is gone; their records stay.
func TestKeepRounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "keep_rounds=2")
	w.all(t)
	spec := w.script(t, "p", `echo out $TDF_ROUND; echo err $TDF_ROUND >&2`)
	spec.Retry.Limit = task.AtMost(4)
	id := w.open(t, spec)[0]
	task := w.archived(t, id, sm.Failed)
	for round := range 5 {
		want := map[string]string{"output": "-", "error": "-", "dropped": "1", "exit_code": "0", "worker": "w", "executed": "*"}
		if round == 0 || round == 4 {
			want["output"], want["error"], want["dropped"] = fmt.Sprintf("out %d\n", round), fmt.Sprintf("err %d\n", round), "-"
		}
		for name, value := range want {
			checkFields(t, task, map[string]string{sm.RoundField(round, name): value})
		}
	}
	out, _ := w.manage(t, 0, "logs", "--round", "0", id2text(id))
	if out != "out 0\n" {
		t.Errorf("logs of round 0: %q", out)
	}
	_, stderr := w.manage(t, 0, "logs", "--round", "2", id2text(id))
	contains(t, "logs of round 2", stderr, "kept no longer", "keep_rounds")
}

// A program says how far it is: ls and wait show it while it runs.
func TestProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.all(t)
	spec := w.script(t, "p", `echo 'progress=0.4 four of ten' > "$TDF_CONTROL"
until [ -e "$1" ]; do sleep 0.05; done`)
	spec.Input = filepath.Join(w.dir, "go")
	id := w.open(t, spec)[0]
	screen := hosttest.OpenTerminal(t)
	waiting := w.start(t, &exec.Cmd{
		Path: program(t, "tdf-manager"), Dir: w.dir, Args: []string{"tdf-manager", "--config", w.cfg, "wait", id2text(id)},
		Stdout: screen.Slave, Stderr: screen.Slave,
	})
	var list string
	wait.Eventually(t, patience, func() bool {
		list, _ = w.manage(t, 0, "ls")
		return strings.Contains(list, "four of ten")
	}, "ls does not show the progress")
	contains(t, "ls", list, "40", "running")
	screen.Await(t, "four of ten")
	w.file(t, "go", "", 0o644)
	w.archived(t, id, sm.Succeeded)
	waiting.Finish(t)
}
