package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// startDaemon runs an rsync daemon (see [hosttest.RsyncDaemon]), and gives its address.
func startDaemon(t *testing.T, dir string) string {
	t.Helper()
	return hosttest.RsyncDaemon(t, dir)
}

func TestRsyncDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for format, data := range allFormats(t, goodEntries()) {
		write(t, filepath.Join(dir, "sub", "p"+string(format)), data, 0o644)
	}
	write(t, filepath.Join(dir, "run.sh"), []byte(script), 0o644)
	write(t, filepath.Join(dir, "big", "run.sh"), make([]byte, 1<<20), 0o644)
	noErr(t, os.MkdirAll(filepath.Join(dir, "dir.tar"), 0o755))
	noErr(t, unix.Mkfifo(filepath.Join(dir, "fifo.tar"), 0o644))
	addr := startDaemon(t, dir)

	o := testOptions(t)
	o.Dir = filepath.Join(o.Dir, "with blank")
	o.MaxBytes = 1 << 18
	o.stallTimeout = 5 * time.Second
	f := newFetcher(t, o)
	for program, source := range map[string]string{
		"script": "rsync://" + addr + "/m/run.sh", "tar": "rsync://" + addr + "/m/sub/p.tar",
		"zip": "rsync:rsync://" + addr + "/m/sub/p.zip", "zst": "rsync://" + addr + "/m/sub/p.tar.zst",
	} {
		var log []string
		got, err := ensureDir(f, t.Context(), program, source, func(l string) { log = append(log, l) })
		noErr(t, err)
		if runProgram(t, got) != "hello\n" || !strings.HasPrefix(log[1], "rsyncing ") {
			t.Errorf("%s: %q", program, log)
		}
	}
	for source, text := range map[string]string{
		"/m/none.tar": "No such file", "/nomodule/run.sh": "Unknown module", "/m/dir.tar": "transferred nothing",
		"/m/big/run.sh": "fetch_max_bytes", "/m/fifo.tar": "transferred nothing", "/locked/run.sh": "rsync",
	} {
		_, err := f.Ensure(t.Context(), "bad", "rsync://"+addr+source, nil)
		wantErr(t, err, nil, text, "could not fetch program 'bad'")
		if missing := errors.Is(err, ErrMissing); missing != (source == "/m/none.tar") {
			t.Errorf("%s: missing is %t", source, missing)
		}
	}
}

// fakeRsync is a script in the place of rsync; it finds its last argument in
// $dst, and its own arguments and environment go to files.
func fakeRsync(t *testing.T, body string) (path, record string) {
	t.Helper()
	record = t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$@\" > %[1]s/args\nenv > %[1]s/env\n"+
		"for dst in \"$@\"; do :; done\n%s\n", record, body)
	path = filepath.Join(t.TempDir(), "rsync")
	// Written by another process: one that a test is forking here could hold it
	// open, and it could not be executed.
	cmd := exec.Command("sh", "-c", `cat > "$0" && chmod 755 "$0"`, path)
	cmd.Stdin = strings.NewReader(text)
	noErr(t, cmd.Run())
	return path, record
}

func TestRsyncArguments(t *testing.T) {
	t.Setenv("RSYNC_RSH", "evil")
	t.Setenv("RSYNC_PASSWORD", "canary")
	o := testOptions(t)
	var record string
	o.RsyncPath, record = fakeRsync(t, "echo '#!/bin/sh' > $dst/run.sh")
	o.SSHExtra = []string{"-i", "/key", "-oConnectTimeout=3"}
	_, err := newFetcher(t, o).Ensure(t.Context(), "p", "rsync:me@host:dir/run.sh", nil)
	noErr(t, err)
	text, err := os.ReadFile(filepath.Join(record, "args"))
	noErr(t, err)
	args := strings.Split(strings.TrimSpace(string(text)), "\n")
	dst := rsyncStage + "/" // below its working directory
	if tail := args[len(args)-3:]; !slices.Equal(tail, []string{"--", "me@host:dir/run.sh", dst}) {
		t.Errorf("ends in %q", tail)
	}
	for _, want := range []string{"--no-devices", "--no-specials", "--copy-links", "--protect-args", "--timeout=30",
		"--max-size=1073741824", "--rsh=ssh -i /key -oConnectTimeout=3 -oBatchMode=yes -oStrictHostKeyChecking=yes -oConnectTimeout=10"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is missing in %q", want, args)
		}
	}
	env, err := os.ReadFile(filepath.Join(record, "env"))
	noErr(t, err)
	if strings.Contains(string(env), "RSYNC_") || !strings.Contains(string(env), "PATH=") {
		t.Errorf("environment: %s", env)
	}
}

// What arrives is not trusted: links and floods are refused.
func TestRsyncHostileResult(t *testing.T) {
	t.Parallel()
	for body, text := range map[string]string{
		"ln -s /etc/passwd $dst/run.sh":          "not a regular file",
		"mkdir $dst/run.sh":                      "not a regular file",
		"head -c 200000 /dev/zero > $dst/run.sh": "",
		"printf 'bad\\001\\nnews' >&2; exit 23":  "rsync: exit status 23: bad\\x01 news",
		"head -c 100000 /dev/zero >&2; exit 1":   "exit status 1",
		"exit 0":                                 "transferred nothing",
	} {
		o := testOptions(t)
		o.MaxBytes = 1 << 16
		o.RsyncPath, _ = fakeRsync(t, body)
		_, err := newFetcher(t, o).Ensure(t.Context(), "p", "rsync:host:run.sh", nil)
		wantErr(t, err, nil, text)
		if len(err.Error()) > 1000 {
			t.Errorf("%d bytes of error", len(err.Error()))
		}
		nothingInstalled(t, o)
	}
	o := testOptions(t)
	o.RsyncPath = "/nonexistent/rsync"
	_, err := newFetcher(t, o).Ensure(t.Context(), "p", "rsync:host:run.sh", nil)
	wantErr(t, err, os.ErrNotExist)
	o.RsyncPath = "no-such-rsync-program"
	_, err = newFetcher(t, o).Ensure(t.Context(), "p", "rsync:host:run.sh", nil)
	wantErr(t, err, exec.ErrNotFound, "[worker] rsync_path")
}

// A cancelled fetch leaves neither rsync nor its children.
func TestRsyncCancelled(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	noErr(t, unix.Mkfifo(pipe, 0o600))
	o.RsyncPath, _ = fakeRsync(t, "sleep 1000 & echo $! > "+pipe+"; wait")
	f := newFetcher(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := f.Ensure(ctx, "p", "rsync:host:run.sh", nil)
		done <- err
	}()
	var pid int
	text, err := os.ReadFile(pipe)
	noErr(t, err)
	_, err = fmt.Sscan(string(text), &pid)
	noErr(t, err)
	cancel()
	wantErr(t, <-done, context.Canceled)
	waitForExit(t, pid)
	nothingInstalled(t, o)
}

func waitForExit(t *testing.T, pid int) {
	t.Helper()
	wait.Eventually(t, 10*time.Second, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ") || syscall.Kill(pid, 0) != nil
	}, "process %d ends", pid)
}

func TestLocalPaths(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "run.sh"), []byte(script), 0o644)
	noErr(t, os.Mkdir(filepath.Join(dir, "dir.tar"), 0o755))
	noErr(t, unix.Mkfifo(filepath.Join(dir, "fifo.tar"), 0o644))
	f := newFetcher(t, o)
	_, err := f.Ensure(t.Context(), "good", "rsync:"+dir+"/run.sh", nil)
	noErr(t, err)
	for source, target := range map[string]error{
		dir + "/dir.tar": errForbidden, dir + "/fifo.tar": errForbidden, dir + "/none/run.sh": os.ErrNotExist, "run.sh": os.ErrNotExist,
	} {
		_, err := f.Ensure(t.Context(), "bad", "rsync:"+source, nil)
		wantErr(t, err, target)
	}
}

// A local failure is not remembered: the next task may find the file there.
func TestLocalFailureIsTriedAgain(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.FailureBackoff = time.Hour
	f := newFetcher(t, o)
	_, err := f.Ensure(t.Context(), "p", "rsync:run.sh", nil)
	wantErr(t, err, os.ErrNotExist)
	write(t, filepath.Join(o.WorkDir, "run.sh"), []byte(script), 0o644)
	_, err = f.Ensure(t.Context(), "p", "rsync:run.sh", nil)
	noErr(t, err)
}
