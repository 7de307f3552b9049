package contend

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/bench/frametest"
	"github.com/tdf-go/tdf/internal/testkit/proctest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLongTDFRefuses(t *testing.T) {
	t.Parallel()
	srv, dir := redistest.Start(t), t.TempDir()
	script := filepath.Join(dir, "run.sh")
	proctest.WriteProgram(t, script, "#!/bin/sh\necho nonsense\n", 0o755)
	c := TDF{Bin: frametest.Build(t), Dir: dir, Redis: srv.Addr(), Script: script, Workers: 1, Slots: 1, Containment: "auto"}
	if _, err := c.run(t.Context(), 2); err == nil || !strings.Contains(err.Error(), `output "nonsense\n"`) {
		t.Errorf("output that is wrong: %v", err)
	}
	c.Bin = dir
	if _, err := c.run(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("programs that are not built: %v", err)
	}
}

// Each contender runs every task once; a wrong output or a failed program is an error.
func TestOutputIsChecked(t *testing.T) {
	t.Parallel()
	spawn := filepath.Join(t.TempDir(), "spawn")
	if out, err := exec.CommandContext(t.Context(), "cc", "-o", spawn, "../peers/spawn.c").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	for text, wantErr := range map[string]bool{
		Program: false, "#!/bin/sh\n": true, "#!/bin/sh\nexit 1\n": true, "#!/bin/sh\necho $1; exit 1\n": true,
		"#!/bin/sh\necho 1\n": true, "#!/bin/sh\necho nonsense\n": true,
	} {
		script := filepath.Join(t.TempDir(), "run.sh")
		proctest.WriteProgram(t, script, text, 0o755)
		for _, c := range []Contender{Xargs(2, script), XargsDirectly(2, script), Plain(2, script), Spawn(spawn, 2, script)} {
			took, err := c.Run(t.Context(), 5)
			if (err != nil) != wantErr {
				t.Errorf("%s, program %q: error %v", c.Name, text, err)
			}
			if err == nil && took <= 0 {
				t.Errorf("%s, program %q took %v", c.Name, text, took)
			}
		}
	}
}

// Output that is longer than a pipe holds comes whole, from many slots.
func TestSpawnTakesLongOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spawn, script := filepath.Join(dir, "spawn"), filepath.Join(dir, "run.sh")
	if out, err := exec.CommandContext(t.Context(), "cc", "-o", spawn, "../peers/spawn.c").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	proctest.WriteProgram(t, script, "#!/bin/sh\nhead -c 200000 /dev/zero\n", 0o755)
	cmd := Command(t.Context(), spawn, "3", script)
	cmd.Stdin = strings.NewReader("1\n2\n3\n4\n5")
	out, err := cmd.Output()
	if err != nil || len(out) != 1_000_000 {
		t.Errorf("%d bytes, %v%s", len(out), err, StderrOf(err))
	}
}

// What a contender has started ends with the context, though the shell would wait for it.
func TestCommandEndsItsGroup(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "pid")
	cmd := Command(ctx, "sh", "-c", `sleep 3600 & echo $! > "$0.new"; mv "$0.new" "$0"; wait`, file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	wait.Eventually(t, time.Minute, func() bool {
		text, err := os.ReadFile(file)
		pid, _ = strconv.Atoi(string(bytes.TrimSpace(text)))
		return err == nil && pid > 0
	}, "the child")
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("it ended by itself")
	}
	// Whoever adopts it buries it: until then it is a zombie.
	wait.Eventually(t, time.Minute, func() bool { return gone(pid) }, "the end of process %d", pid)
}

func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || bytes.Contains(stat, []byte(") Z "))
}

func TestReport(t *testing.T) {
	t.Parallel()
	var got struct{ N int }
	if err := Report("peer", Command(t.Context(), "echo", `{"n": 7}`), &got); err != nil || got.N != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, script := range []string{"echo sorry >&2; exit 1", "echo sorry"} {
		if err := Report("peer", Command(t.Context(), "sh", "-c", script), &got); err == nil || !strings.Contains(err.Error(), "sorry") {
			t.Errorf("%s: %v", script, err)
		}
	}
}
