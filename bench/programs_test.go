package main

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

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

func TestLongTDFRefuses(t *testing.T) {
	t.Parallel()
	srv, err := site.StartRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	dir := t.TempDir()
	script := filepath.Join(dir, "run.sh")
	hosttest.WriteProgram(t, script, "#!/bin/sh\necho nonsense\n", 0o755)
	c := deployment{bin: build(t), dir: dir, redis: srv.Socket(), script: script, workers: 1, slots: 1, containment: "auto"}
	if _, err := c.run(t.Context(), 2); err == nil || !strings.Contains(err.Error(), `output "nonsense\n"`) {
		t.Errorf("output that is wrong: %v", err)
	}
	c.bin = dir
	if _, err := c.run(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("programs that are not built: %v", err)
	}
}

// Each contender runs every task once; a wrong output or a failed program is an error.
func TestOutputIsChecked(t *testing.T) {
	t.Parallel()
	container, err := openContainer(shim.Group)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = container.Close() }()
	b := newBench(t, 1)
	b.Tasks, b.Slots, b.peers = 5, 2, "peers"
	for text, wantErr := range map[string]bool{
		script: false, "#!/bin/sh\n": true, "#!/bin/sh\nexit 1\n": true, "#!/bin/sh\necho $1; exit 1\n": true,
		"#!/bin/sh\necho 1\n": true, "#!/bin/sh\necho nonsense\n": true,
	} {
		script := filepath.Join(t.TempDir(), "run.sh")
		hosttest.WriteProgram(t, script, text, 0o755)
		shims := &slots{container: container, script: script, temp: t.TempDir(), n: 2}
		for _, c := range []*contender{
			b.xargs(t.Context(), script), b.plain("Go", script), b.spawn(t.Context(), script), b.timed("shim", shims.run),
		} {
			got, err := c.run(t.Context())
			if (err != nil) != wantErr || c.absent != "" {
				t.Errorf("%s, program %q: error %v, absent %q", c.name, text, err, c.absent)
			}
			if err == nil && (got[rate.Name] <= 0 || got[cpuMillis.Name] <= 0) {
				t.Errorf("%s, program %q: %v", c.name, text, got)
			}
		}
	}
}

// Output that is longer than a pipe holds comes whole, from many slots.
func TestSpawnTakesLongOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spawn, script := filepath.Join(dir, "spawn"), filepath.Join(dir, "run.sh")
	if out, err := exec.CommandContext(t.Context(), "cc", "-o", spawn, "peers/spawn.c").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	hosttest.WriteProgram(t, script, "#!/bin/sh\nhead -c 200000 /dev/zero\n", 0o755)
	cmd := command(t.Context(), spawn, "3", script)
	cmd.Stdin = strings.NewReader("1\n2\n3\n4\n5")
	out, err := cmd.Output()
	if err != nil || len(out) != 1_000_000 {
		t.Errorf("%d bytes, %v%s", len(out), err, stderrOf(err))
	}
}

// What a contender has started ends with the context, though the shell would wait for it.
func TestCommandEndsItsGroup(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "pid")
	cmd := command(ctx, "sh", "-c", `sleep 3600 & echo $! > "$0.new"; mv "$0.new" "$0"; wait`, file)
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
	// It stays a zombie until its new parent reaps it.
	wait.Eventually(t, time.Minute, func() bool { return gone(pid) }, "the end of process %d", pid)
}

func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || bytes.Contains(stat, []byte(") Z "))
}

func TestReport(t *testing.T) {
	t.Parallel()
	var got struct{ N int }
	if err := report("peer", command(t.Context(), "echo", `{"n": 7}`), &got); err != nil || got.N != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, script := range []string{"echo sorry >&2; exit 1", "echo sorry"} {
		if err := report("peer", command(t.Context(), "sh", "-c", script), &got); err == nil || !strings.Contains(err.Error(), "sorry") {
			t.Errorf("%s: %v", script, err)
		}
	}
}
