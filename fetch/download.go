package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/task"
)

// download brings the source's file into the stage and completes m with its
// size and hash, which a pin must equal. It returns what it has seen of the source, or
// errUnchanged if that is what is known.
func (f *Fetcher) download(
	ctx context.Context, s *stage, src task.Source, known sighting, m *manifest, note func(string),
) (sighting, error) {
	sink, err := newSink(s.root, f.opts.MaxBytes)
	if err != nil {
		return known, err
	}
	sink.known = known.validator
	err = f.transfer(ctx, s, src, sink, note)
	if err != nil && f.missing(ctx, src, err) {
		err = f.instead(ctx, src, sink, err, note)
	}
	if err = errors.Join(err, sink.file.Close()); err != nil {
		if !errors.Is(err, ErrLimit) && !errors.Is(err, errForbidden) && !errors.Is(err, ErrChecksum) && !disk.Full(err) {
			err = &transferError{err}
		}
		return known, err
	}
	m.SHA256, m.Bytes = sink.sum(), sink.n
	return sighting{Source: src.Location, SHA256: m.SHA256, validator: sink.seen}, nil
}

// transfer fills the sink with what the source holds, which must be what it is pinned to.
func (f *Fetcher) transfer(ctx context.Context, s *stage, src task.Source, sink *sink, note func(string)) (err error) {
	switch src.Kind {
	case task.SourceHTTP:
		note(fmt.Sprintf("downloading %s from %s", src, redact(src.Location)))
		err = f.httpGet(ctx, src, sink)
	case task.SourceBlob:
		note(fmt.Sprintf("reading %s from redis, sha256 %s", src, src.SHA256))
		err = f.readBlob(ctx, src, sink)
	default:
		from := strings.TrimPrefix(src.Location, "rsync:")
		note(fmt.Sprintf("rsyncing %s from %s", src, redact(from)))
		err = f.rsync(ctx, s, src, sink)
	}
	if err == nil && src.SHA256 != "" && src.SHA256 != sink.sum() {
		err = fmt.Errorf("%w: %s has sha256 %s, the task pins %s", ErrChecksum, src, sink.sum(), src.SHA256)
	}
	return err
}

// missing reports whether a pinned version is not where it was, so that Redis may have it: who has pinned it has put it there,
// as far as there was room.
func (f *Fetcher) missing(ctx context.Context, src task.Source, err error) bool {
	return src.SHA256 != "" && src.Kind != task.SourceBlob && f.opts.Blob != nil && ctx.Err() == nil &&
		!errors.Is(err, ErrLimit) && !errors.Is(err, errForbidden) && !disk.Full(err)
}

// instead reads a pinned version from Redis. Where that has none, it is why the source has none that counts; the error
// matches task.ErrNoBlob too if the source itself says that it has no such version.
func (f *Fetcher) instead(ctx context.Context, src task.Source, sink *sink, why error, note func(string)) error {
	if err := sink.reset(); err != nil {
		return err
	}
	err := f.readBlob(ctx, src, sink)
	switch {
	case errors.Is(err, task.ErrNoBlob) && gone(src, why):
		return fmt.Errorf("%w; redis does not keep sha256 %s either: %w", why, src.SHA256, err)
	case errors.Is(err, task.ErrNoBlob):
		return fmt.Errorf("%w; redis does not keep sha256 %s either", why, src.SHA256)
	case err != nil:
		return err
	case sink.sum() != src.SHA256:
		return fmt.Errorf("%w: what redis keeps of %s has sha256 %s, the task pins %s", ErrChecksum, src, sink.sum(), src.SHA256)
	}
	note(fmt.Sprintf("%s is not there any more, so it was read from redis: %s", src, printable(clean.URLs(why.Error()))))
	return nil
}

// gone reports whether a source has answered that what is pinned is not there.
func gone(src task.Source, err error) bool {
	return errors.Is(err, ErrMissing) || errors.Is(err, ErrChecksum) || src.Kind == task.SourceLocal && errors.Is(err, fs.ErrNotExist)
}

func (f *Fetcher) readBlob(ctx context.Context, src task.Source, sink *sink) error {
	if f.opts.Blob == nil {
		return fmt.Errorf("%w: nothing is read from Redis here", errForbidden)
	}
	return f.opts.Blob(ctx, src.SHA256, sink)
}

func (f *Fetcher) rsync(ctx context.Context, s *stage, src task.Source, sink *sink) error {
	if src.Kind == task.SourceLocal {
		return f.copyLocal(ctx, src.Path, sink)
	}
	if err := s.root.Mkdir(rsyncStage, 0o700); err != nil {
		return err
	}
	if sink.known.File != "" {
		now, err := f.runRsync(ctx, s, src, "--dry-run", "--out-format=%l %M")
		if err == nil && strings.TrimSpace(now) == sink.known.File {
			err = errUnchanged
		}
		if err != nil {
			return err
		}
	}
	if _, err := f.runRsync(ctx, s, src); err != nil {
		return err
	}
	name := path.Join(rsyncStage, path.Base(src.File))
	fi, err := s.root.Lstat(name)
	if err != nil || !fi.Mode().IsRegular() {
		return fmt.Errorf("rsync transferred nothing: %s is not a regular file, or is larger than %d bytes (%s)",
			src, f.opts.MaxBytes, setting("MaxBytes"))
	}
	sink.seen.File = fmt.Sprintf("%d %s", fi.Size(), fi.ModTime().UTC().Format("2006/01/02-15:04:05")) // as --out-format
	file, err := s.root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return copyContext(ctx, sink, file)
}

// sink is the staged file: it counts, hashes and limits what is written. known is what the source was
// when it was seen before, seen what it is now.
type sink struct {
	known, seen validator

	file *os.File
	hash hash.Hash
	n    int64
	max  int64
}

func newSink(root *os.Root, limit int64) (*sink, error) {
	file, err := root.OpenFile(stagedFile, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("stage download: %w", err)
	}
	return &sink{file: file, hash: sha256.New(), max: limit}, nil
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	if s.n+int64(len(p)) > s.max {
		return 0, &limitError{of: limitDownload, most: s.max}
	}
	n, err := s.file.Write(p)
	s.hash.Write(p[:n])
	s.n += int64(n)
	return n, err
}

// sum is the SHA-256 of what is in it, in hex.
func (s *sink) sum() string { return hex.EncodeToString(s.hash.Sum(nil)) }

// reset empties the sink for another try.
func (s *sink) reset() error {
	if s.n == 0 {
		return nil
	}
	s.hash.Reset()
	s.n = 0
	_, err := s.file.Seek(0, io.SeekStart)
	return errors.Join(err, s.file.Truncate(0))
}

// copyContext is io.Copy that looks at the context between two reads.
func copyContext(ctx context.Context, w io.Writer, r io.Reader) error {
	_, err := io.Copy(w, whileAlive(ctx, r))
	return err
}

// whileAlive reads from r until ctx ends.
func whileAlive(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// copyLocal copies a local rsync: path without the rsync program.
func (f *Fetcher) copyLocal(ctx context.Context, name string, sink *sink) error {
	name = f.local(name)
	file, err := f.openAs(name)
	if err != nil {
		return cleanPathError(err)
	}
	defer func() { _ = file.Close() }()
	fi, err := file.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("%w: '%s' is not a regular file", errForbidden, printable(name))
	}
	if sink.seen.File = identity(fi); sink.seen == sink.known {
		return errUnchanged
	}
	return copyContext(ctx, sink, file)
}

// local is where a local source lies.
func (f *Fetcher) local(name string) string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(f.opts.WorkDir, name)
	}
	return filepath.Clean(name)
}

// openAs opens with the rights of who may read local sources.
func (f *Fetcher) openAs(name string) (file *os.File, err error) {
	open := func() (err error) {
		file, err = os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0) // a FIFO does not block
		return err
	}
	if f.opts.ReadAs == nil {
		err = open()
		return file, err
	}
	err = f.opts.ReadAs(open)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: local sources are read as the user that programs run as, who must be allowed to: %w",
			errForbidden, cleanPathError(err))
	}
	return file, err
}

// cleanPathError keeps names of files, which tasks choose, printable.
func cleanPathError(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s '%s': %w", pe.Op, printable(pe.Path), pe.Err)
	}
	return err
}

// rsyncStage is where below a staging directory rsync writes.
const rsyncStage = "rsync"

// runRsync transfers one remote file into the stage, and returns what rsync has written.
func (f *Fetcher) runRsync(ctx context.Context, s *stage, src task.Source, flags ...string) (string, error) {
	dir, err := s.root.Open(".")
	if err != nil {
		return "", err
	}
	defer func() { _ = dir.Close() }()
	return f.rsyncIn(ctx, dir, append(flags, f.rsyncArgs(src, rsyncStage)...))
}

// rsyncIn runs rsync in an open directory, and returns what it has written.
func (f *Fetcher) rsyncIn(ctx context.Context, dir *os.File, args []string) (string, error) {
	// Not by a path, which the owner of a directory above could lead elsewhere.
	cmd := exec.CommandContext(ctx, f.opts.RsyncPath, args...)
	cmd.Env = withoutRsync(os.Environ())
	cmd.Dir = "/proc/self/fd/" + strconv.Itoa(int(dir.Fd()))
	said, messages := &head{limit: 1024}, &head{limit: 1024}
	cmd.Stdout = said
	// rsync, with the ssh it starts, is a process group of its own, and dies with the worker.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return os.NewSyscallError("kill", syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)) }
	cmd.WaitDelay = 2 * time.Second
	err := runChild(cmd, messages, f.opts.MaxBytes)
	return said.text.String(), err
}

// rsyncArgs gives the fixed, safe options; the source stands behind "--".
// Links are followed at the sender, so that only a regular file can arrive.
func (f *Fetcher) rsyncArgs(src task.Source, dst string) []string {
	args := append([]string{
		"--times", "--copy-links", "--no-devices", "--no-specials", "--no-perms", "--chmod=F0600",
		"--max-size=" + strconv.FormatInt(f.opts.MaxBytes, 10),
	}, f.remoteArgs(src.Kind)...)
	return append(args, "--", src.Path, dst+"/")
}

// remoteArgs are how rsync talks to another host.
func (f *Fetcher) remoteArgs(kind task.SourceKind) []string {
	seconds := strconv.Itoa(int(math.Ceil(f.opts.stallTimeout.Seconds())))
	args := []string{"--protect-args", "--timeout=" + seconds}
	if kind == task.SourceShell {
		// ssh keeps the first value it sees of an option.
		ssh := strings.Join(slices.Concat([]string{"ssh"}, f.opts.SSHExtra, sshOptions), " ")
		args = append(args, "--rsh="+ssh)
	}
	if kind == task.SourceDaemon {
		args = append(args, "--contimeout="+seconds)
	}
	return args
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
	return append(kept, "LC_ALL=C", "TZ=UTC")
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
	// It stops a sender that sends more than it announced. It is a second line: the size
	// is checked again afterwards, so an error is no harm.
	most := unix.Rlimit{Cur: uint64(maxFile), Max: uint64(maxFile)}
	_ = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_FSIZE, &most, nil)
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
	if strings.Contains(text, "link_stat") && strings.Contains(text, "No such file or directory") { // likewise
		err = fmt.Errorf("%w (%w)", err, ErrMissing)
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
