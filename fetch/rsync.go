package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// rsyncStage is where below a staging directory rsync writes.
const rsyncStage = "rsync"

// runRsync transfers one remote file into the stage.
func (f *Fetcher) runRsync(ctx context.Context, s *stage, src Source) error {
	if err := s.root.Mkdir(rsyncStage, 0o700); err != nil {
		return err
	}
	dir, err := s.root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	// Not by a path, which the owner of a directory above could lead elsewhere.
	cmd := exec.CommandContext(ctx, f.opts.RsyncPath, f.rsyncArgs(src, rsyncStage)...)
	cmd.Env = withoutRsync(os.Environ())
	cmd.Dir = placeOf(dir)
	messages := &head{limit: 1024}
	cmd.SysProcAttr = childAttr()
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = 2 * time.Second
	return runChild(cmd, messages, f.opts.MaxDownloadBytes)
}

// rsyncArgs gives the fixed, safe options; the source stands behind "--".
// Links are followed at the sender, so that only a regular file can arrive.
func (f *Fetcher) rsyncArgs(src Source, dst string) []string {
	seconds := strconv.Itoa(int(math.Ceil(f.opts.StallTimeout.Seconds())))
	args := []string{
		"--times", "--copy-links", "--no-devices", "--no-specials", "--no-perms", "--chmod=F0600",
		"--protect-args", "--max-size=" + strconv.FormatInt(f.opts.MaxDownloadBytes, 10), "--timeout=" + seconds,
	}
	if src.Kind == KindDaemon {
		args = append(args, "--contimeout="+seconds)
		if f.opts.RsyncPasswordFile != "" {
			args = append(args, "--password-file="+f.opts.RsyncPasswordFile)
		}
	} else {
		// ssh keeps the first value it sees of an option.
		ssh := strings.Join(slices.Concat([]string{f.opts.SSHCommand}, f.opts.SSHExtra, f.opts.SSHOptions), " ")
		args = append(args, "--rsh="+ssh)
	}
	return append(args, "--", src.Path, dst+"/")
}

// withoutRsync removes what would change rsync's behaviour from outside, such
// as RSYNC_RSH, RSYNC_PROXY and RSYNC_PASSWORD.
func withoutRsync(env []string) []string {
	var kept []string
	for _, v := range env {
		if !strings.HasPrefix(v, "RSYNC_") {
			kept = append(kept, v)
		}
	}
	return append(kept, "LC_ALL=C")
}

// runChild runs cmd on one thread from start to end: the child dies with the
// thread that started it, which otherwise could end while the worker lives.
func runChild(cmd *exec.Cmd, messages *head, maxFile int64) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.Stderr = messages
	if err := cmd.Start(); err != nil {
		return rsyncError(err, messages)
	}
	limitFileSize(cmd.Process.Pid, maxFile)
	if err := cmd.Wait(); err != nil {
		return rsyncError(err, messages)
	}
	return nil
}

func rsyncError(err error, messages *head) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("rsync is not installed at this worker (%s): %w", setting("RsyncPath"), err)
	}
	text := strings.Join(strings.Fields(messages.text.String()), " ")
	if strings.Contains(text, "No space left on device") { // as strerror(3) says it without a locale
		err = fmt.Errorf("%w (%w)", err, syscall.ENOSPC)
	}
	return fmt.Errorf("rsync: %w: %s", err, printable(text))
}

// head keeps the first bytes of a child's messages and drops the rest: the
// reason comes first, what follows is consequence. It must not embed a buffer,
// whose ReadFrom would be used instead of Write.
type head struct {
	text  bytes.Buffer
	limit int
}

// Write implements io.Writer and never fails.
func (h *head) Write(p []byte) (int, error) {
	if room := h.limit - h.text.Len(); room > 0 {
		h.text.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
