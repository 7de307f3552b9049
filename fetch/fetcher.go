// Package fetch brings a program named by a task onto this host.
//
// A task names a program and a source. [Fetcher.Ensure] downloads the source
// over HTTP or rsync (local paths are copied), unpacks it into a staging
// directory and installs it by one rename, so a version of a program is either
// absent or complete. Versions are named by their content, the SHA-256 of the
// file fetched, and lie beside each other:
//
//	DIR/sum/HASH/run.sh              the program, executed by the worker
//	DIR/sum/HASH/.tdf-manifest.json  where it came from: source and SHA-256
//	DIR/.tdf/lock/sum                flock: one fetch per host and program
//	DIR/.tdf/seen/sum.SOURCE         which version a source without a pin had
//	DIR/.tdf/staging/sum/            a fetch in progress, or what a dead one left
//
// Sources are untrusted. Archives are decompressed as streams by mholt/archiver and
// every byte is written by this package through [os.Root], after its own
// checks of names, links, types, modes and sizes; sizes are those counted, not
// those declared. Credentials come from the worker's side only (netrc, CA file,
// ssh options); a source that carries some is refused and not repeated.
//
// The package knows nothing of Redis or of tasks.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/task"
)

// Fetcher installs programs below one directory. It may be used by any number
// of goroutines, and any number of processes may work on the same directory.
type Fetcher struct {
	opts     Options
	root     *os.Root
	client   *http.Client
	failures *failures
	// at is called with the name of each step reached; tests stop there.
	at func(step string)

	mu       sync.Mutex
	complete map[string]os.FileInfo   // versions that were looked into, by directory
	extents  map[string]extent        // of versions, by directory
	seen     map[string]sighting      // by program and source
	pins     map[string]sighting      // by source: what Pin has found
	fetching map[string]chan struct{} // by program: closed at the end
}

// Version is one content of a program on this host.
type Version struct {
	// Dir is the absolute directory that holds an executable run.sh.
	Dir string
	// SHA256 is that of the file that was fetched, as lower-case hex; empty for a
	// program that was put there by hand.
	SHA256 string
}

// New makes a Fetcher, creates Options.Dir and removes what fetches of dead
// processes left. Close releases it.
func New(o Options) (*Fetcher, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := o.absolute(); err != nil {
		return nil, err
	}
	client, err := newClient(&o)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("create program directory: %w", err)
	}
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open program directory: %w", err)
	}
	f := &Fetcher{opts: o, root: root, client: client, at: func(string) {},
		failures: newFailures(o.FailureBackoff, time.Now, rand.Float64),
		complete: map[string]os.FileInfo{}, extents: map[string]extent{}, seen: map[string]sighting{},
		pins: map[string]sighting{}, fetching: map[string]chan struct{}{}}
	if err := f.prepare(); err != nil {
		_ = root.Close()
		return nil, err
	}
	return f, nil
}

// Close releases the program directory. No Ensure may be under way.
func (f *Fetcher) Close() error { return f.root.Close() }

// Ensure makes a version of program present in Options.Dir. A source with a pin
// (#sha256=HEX) means the version of that hash, and no other. One without means what
// it holds now: it is looked at again at most every Options.Revalidate, a local path
// each time. If it cannot be looked at, the version that it had last is used, and note
// is told. A version is fetched only if it is not there yet; concurrent callers, also
// in other processes, wait for one fetch. note, if not nil, gets the lines of progress
// for the task's log. Every error is an [*Error] that wraps its cause; it matches task.ErrNoBlob if
// neither the source nor Redis has the pinned version any more.
//
// A program put there by hand, as DIR/PROGRAM/run.sh without a manifest, is used as it is unless the
// source is pinned; then also an empty source will do.
func (f *Fetcher) Ensure(ctx context.Context, program, source string, note func(line string)) (Version, error) {
	if note == nil {
		note = func(string) {}
	}
	named := program
	if strings.HasPrefix(source, task.CommandPrefix) {
		program, source = uploads, task.BlobSource(task.SourceSHA256(source))
	}
	hash, err := f.ensure(ctx, program, source, note)
	if err != nil {
		return Version{}, &Error{Program: named, Worker: f.opts.Worker, Err: f.explainFull(err)}
	}
	return Version{Dir: filepath.Join(f.opts.Dir, program, hash), SHA256: hash}, nil
}

// uploads is the program that the directories are stored as which commands run in (see [task.SourceCommand]). They need no
// run.sh, and all commands of one upload share a directory.
const uploads = "upload"

// ensure returns the hash of the version, empty for a program that was put there by hand.
func (f *Fetcher) ensure(ctx context.Context, program, source string, note func(string)) (hash string, err error) {
	if err := task.ValidProgram(program); err != nil {
		return "", err
	}
	src, err := f.parse(source)
	if err != nil {
		if hand, _ := f.byHand(program); hand && source == "" && !f.opts.RequirePinned {
			return "", nil
		}
		note(fmt.Sprintf("attempting to fetch program '%s' from '%s'", program, redact(source)))
		return "", err
	}
	if hash := f.present(program, src); hash != "" {
		return hash, nil
	}
	if src.SHA256 == "" {
		if hand, err := f.byHand(program); hand || err != nil {
			return "", err
		}
	}
	unlock, err := f.lock(ctx, program)
	if err != nil {
		return "", err
	}
	defer unlock()
	if hash := f.present(program, src); hash != "" {
		return hash, nil
	}
	return f.look(ctx, program, src, note)
}

// byHand reports whether the program was put there by hand: its run.sh does not lie in a version.
func (f *Fetcher) byHand(program string) (bool, error) {
	dir := filepath.Join(f.opts.Dir, program)
	_, err := os.Lstat(filepath.Join(dir, runFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for program '%s': %w", program, err)
	}
	if _, ours, err := readManifest(dir, program); ours || err != nil {
		return false, err
	}
	if err := runnable(os.DirFS(dir), program); err != nil {
		return false, fmt.Errorf("%w (it was put there by hand: complete or remove it)", err)
	}
	return true, nil
}

// present returns the hash of the version that the source means, if that is known and the version is there.
func (f *Fetcher) present(program string, src task.Source) string {
	hash := src.SHA256
	if hash == "" {
		hash = f.settled(program, src)
	}
	if hash == "" || !f.installed(program, hash) {
		return ""
	}
	return hash
}

// settled is the version that a source without a pin is taken for without asking it: it was looked at a
// short while ago, and a local file is the same still.
func (f *Fetcher) settled(program string, src task.Source) string {
	f.mu.Lock()
	s := f.seen[program+"\x00"+src.Location]
	f.mu.Unlock()
	if !f.fresh(&s, src) {
		return ""
	}
	return s.SHA256
}

func (f *Fetcher) fresh(s *sighting, src task.Source) bool {
	if age := time.Since(s.looked); s.SHA256 == "" || age < 0 || age >= f.opts.Revalidate {
		return false
	}
	if src.Kind != task.SourceLocal {
		return true
	}
	fi, err := os.Stat(f.local(src.Path))
	return err == nil && identity(fi) == s.File
}

// look fetches the version that the source means, or finds that it is there, with the program's lock held.
func (f *Fetcher) look(ctx context.Context, program string, src task.Source, note func(string)) (string, error) {
	known, fresh := f.recall(program, src)
	if fresh {
		return known.SHA256, nil
	}
	key := program + "\x00" + src.Location + "\x00" + src.SHA256
	if err := f.failures.recent(key); err != nil {
		return "", err
	}
	if known.SHA256 == "" {
		note(fmt.Sprintf("attempting to fetch program '%s' from '%s'", program, redact(src.Location)))
	}
	hash, err := f.fetch(ctx, program, src, known, note)
	switch {
	case err == nil:
		return hash, nil
	case known.SHA256 != "" && ctx.Err() == nil && errors.As(err, new(*transferError)):
		note(fmt.Sprintf("could not look whether program '%s' has changed, going on with sha256 %s: %s",
			program, known.SHA256, printable(clean.URLs(err.Error()))))
		f.sighted(program, known)
		return known.SHA256, nil
	case src.Kind != task.SourceLocal && ctx.Err() == nil && !disk.Full(err):
		// A local path costs nothing to try again; a caller who gave up and a
		// full disk say nothing about the source.
		f.failures.remember(key, err)
	}
	return "", err
}

func (f *Fetcher) parse(source string) (task.Source, error) {
	src, err := task.ParseSource(source)
	if err != nil {
		return task.Source{}, err
	}
	if f.opts.RequirePinned && src.SHA256 == "" {
		return task.Source{}, fmt.Errorf("%w: '%s': this worker wants #sha256=HEX at its end", ErrUnpinned, redact(source))
	}
	return src, nil
}

// fetch does the whole work, in staging, with the program's lock held. It returns the hash of what the source holds; known is
// what it held before, if anything.
func (f *Fetcher) fetch(ctx context.Context, program string, src task.Source, known sighting, note func(string)) (string, error) {
	ctx, cancel := f.bounded(ctx)
	defer cancel()
	stage, err := f.newStage(program)
	if err != nil {
		return "", err
	}
	defer f.discard(stage, note)
	var lines []string // worth telling only if there is something new
	m := manifest{Version: manifestVersion, Program: program, Source: src.Location}
	now, err := f.download(ctx, stage, src, known, &m, func(line string) { lines = append(lines, line) })
	if errors.Is(err, errUnchanged) {
		f.record(program, known)
		return known.SHA256, nil
	}
	if known.SHA256 != "" && err == nil && m.SHA256 != known.SHA256 {
		note(fmt.Sprintf("program '%s' has changed at its source", program))
	}
	if known.SHA256 == "" || m.SHA256 != known.SHA256 {
		for _, line := range lines {
			note(line)
		}
	}
	if err != nil {
		return "", withCause(ctx, err)
	}
	f.at("downloaded")
	if !f.installed(program, m.SHA256) {
		if err := f.unpack(ctx, stage, src, program, note); err != nil {
			return "", withCause(ctx, err)
		}
		f.at("unpacked")
		if err := f.install(stage, m); err != nil {
			return "", err
		}
		note(fmt.Sprintf("fetched program '%s'", program))
		f.trim(program, m.SHA256)
	}
	if src.SHA256 == "" {
		f.record(program, now)
	}
	return m.SHA256, nil
}

// pinning is the name of the stage and the lock of what is fetched to learn its hash.
const pinning = "pin"

// Pin returns the source with the hash of what it holds now, #sha256=HEX, which [Fetcher.Ensure] keeps to. It
// downloads the file and installs nothing; keep, if not nil, may keep it, for when the source has it no longer (see
// Options.Blob). A source that has a pin is returned as it is. Without keep, a source that was pinned before and has not changed
// since, as its entity tag or date, or its size and times say, is not downloaded again.
func (f *Fetcher) Pin(ctx context.Context, source string, keep func(sha256 string, size int64, file io.ReaderAt)) (string, error) {
	src, err := task.ParseSource(source)
	if err != nil || src.SHA256 != "" {
		return source, err
	}
	unlock, err := f.lock(ctx, pinning)
	if err != nil {
		return "", err
	}
	defer unlock()
	ctx, cancel := f.bounded(ctx)
	defer cancel()
	stage, err := f.newStage(pinning)
	if err != nil {
		return "", err
	}
	quiet := func(string) {}
	defer f.discard(stage, quiet)
	var m manifest
	var known sighting
	if keep == nil {
		f.mu.Lock()
		known = f.pins[src.Location]
		f.mu.Unlock()
	}
	now, err := f.download(ctx, stage, src, known, &m, quiet)
	if errors.Is(err, errUnchanged) {
		return src.Location + task.Pin(known.SHA256), nil
	}
	if err == nil && keep != nil {
		err = stage.keep(&m, keep)
	}
	if err != nil {
		return "", f.explainFull(withCause(ctx, err))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pins) >= mostPins {
		clear(f.pins)
	}
	f.pins[src.Location] = now
	return src.Location + task.Pin(m.SHA256), nil
}

// mostPins is how many sources Pin remembers at most; beyond it, it begins anew.
const mostPins = 1000

// keep hands on what was downloaded.
func (s *stage) keep(m *manifest, keep func(sha256 string, size int64, file io.ReaderAt)) error {
	file, err := s.root.Open(stagedFile)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // nothing is written through it
	keep(m.SHA256, m.Bytes, file)
	return nil
}

// bounded limits one fetch.
func (f *Fetcher) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, f.opts.Timeout,
		fmt.Errorf("%w after %v (%s)", ErrTimeout, f.opts.Timeout, setting("Timeout")))
}

// explainFull says what is full, where that is why a fetch failed.
func (f *Fetcher) explainFull(err error) error {
	if !disk.Full(err) {
		return err
	}
	return &diskFullError{dir: f.opts.Dir, err: err}
}

// withCause prefers the reason for which a context was cancelled to the error
// that the cancelling led to.
func withCause(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case errors.As(err, new(*transferError)):
		return &transferError{context.Cause(ctx)}
	default:
		return context.Cause(ctx)
	}
}

// failures remembers for a few seconds that a source failed, so that a hundred
// tasks with one bad source do not ask a dead host a hundred times.
type failures struct {
	backoff time.Duration
	now     func() time.Time
	random  func() float64 // in [0,1)

	mu    sync.Mutex
	known map[string]failure
}

type failure struct {
	err   error
	until time.Time
}

func newFailures(backoff time.Duration, now func() time.Time, random func() float64) *failures {
	return &failures{backoff: backoff, now: now, random: random, known: map[string]failure{}}
}

// recent gives the remembered error, unchanged, or nil.
func (f *failures) recent(key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, ok := f.known[key]
	if !ok || !f.now().Before(seen.until) {
		return nil
	}
	return seen.err
}

// remember keeps err for the backoff plus up to as much jitter, and forgets
// what is over, so the map cannot grow for ever.
func (f *failures) remember(key string, err error) {
	if f.backoff == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	for k, old := range f.known {
		if !now.Before(old.until) {
			delete(f.known, k)
		}
	}
	jitter := time.Duration(f.random() * float64(f.backoff))
	f.known[key] = failure{err: err, until: now.Add(f.backoff + jitter)}
}
