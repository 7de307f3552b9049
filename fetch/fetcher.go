// Package fetch brings a program named by a task onto this host.
//
// A task names a program and a source. [Fetcher.Ensure] downloads the source
// over HTTP or rsync (local paths are copied), unpacks it into a staging
// directory and installs it by one rename, so a program directory is either
// absent or complete:
//
//	DIR/sum/run.sh                 the program, executed by the worker
//	DIR/sum/.tdf-manifest.json     where it came from: source and SHA-256
//	DIR/.tdf/lock/sum              flock: one fetch per host and program
//	DIR/.tdf/staging/sum/          a fetch in progress, or what a dead one left
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
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

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

	mu        sync.Mutex
	manifests map[string]knownManifest // by program
	fetching  map[string]chan struct{} // by program: closed at the end
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
		failures:  newFailures(o.FailureBackoff, time.Now, rand.Float64),
		manifests: map[string]knownManifest{}, fetching: map[string]chan struct{}{}}
	if err := f.prepare(); err != nil {
		_ = root.Close()
		return nil, err
	}
	return f, nil
}

// Close releases the program directory. No Ensure may be under way.
func (f *Fetcher) Close() error { return f.root.Close() }

// Ensure makes program present in Options.Dir and returns its absolute
// directory, which holds an executable run.sh. It fetches only if the program
// is not there yet; concurrent callers, also in other processes, wait for one
// fetch. note, if not nil, gets the lines of progress for the task's log. Every
// error is an [*Error] that wraps its cause.
//
// A directory put there by hand, without a manifest, is used as it is unless
// the source is pinned; then also an empty source will do.
func (f *Fetcher) Ensure(ctx context.Context, program, source string, note func(line string)) (dir string, err error) {
	if note == nil {
		note = func(string) {}
	}
	if err := f.ensure(ctx, program, source, note); err != nil {
		return "", &Error{Program: program, Worker: f.opts.Worker, Err: f.explainFull(err)}
	}
	return filepath.Join(f.opts.Dir, program), nil
}

func (f *Fetcher) ensure(ctx context.Context, program, source string, note func(string)) error {
	if err := task.ValidProgram(program); err != nil {
		return err
	}
	src, err := f.parse(source)
	if err != nil {
		if source == "" && f.byHand(program) {
			return nil
		}
		note(fmt.Sprintf("attempting to fetch program '%s' from '%s'", program, redact(source)))
		return err
	}
	if present, err := f.present(program, src); present || err != nil {
		return err
	}
	unlock, err := f.lock(ctx, program)
	if err != nil {
		return err
	}
	defer unlock()
	if present, err := f.present(program, src); present || err != nil {
		return err
	}
	key := program + "\x00" + src.Location + "\x00" + src.SHA256
	if err := f.failures.recent(key); err != nil {
		return err
	}
	note(fmt.Sprintf("attempting to fetch program '%s' from '%s'", program, redact(source)))
	if err := f.fetch(ctx, program, src, note); err != nil {
		// A local path costs nothing to try again; a caller who gave up and a
		// full disk say nothing about the source.
		if src.Kind != task.SourceLocal && ctx.Err() == nil && !disk.Full(err) {
			f.failures.remember(key, err)
		}
		return err
	}
	note(fmt.Sprintf("fetched program '%s'", program))
	return nil
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

// fetch does the whole work, in staging, with the program's lock held.
func (f *Fetcher) fetch(ctx context.Context, program string, src task.Source, note func(string)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.opts.Timeout,
		fmt.Errorf("%w after %v (%s)", ErrTimeout, f.opts.Timeout, setting("Timeout")))
	defer cancel()
	stage, err := f.newStage(program)
	if err != nil {
		return err
	}
	defer f.discard(stage, note)
	m := manifest{Version: manifestVersion, Program: program, Source: src.Location}
	if err := f.download(ctx, stage, src, &m, note); err != nil {
		return withCause(ctx, err)
	}
	f.at("downloaded")
	if err := f.unpack(ctx, stage, src, program, note); err != nil {
		return withCause(ctx, err)
	}
	f.at("unpacked")
	return f.install(stage, m)
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
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// lockPoll is how often a lock held by another process is tried again; flock
// itself cannot be interrupted by a context.
const lockPoll = 20 * time.Millisecond

// enter waits until no other goroutine has the program, so that only one of them polls
// the file lock.
func (f *Fetcher) enter(ctx context.Context, program string) (leave func(), err error) {
	mine := make(chan struct{})
	for {
		f.mu.Lock()
		other := f.fetching[program]
		if other == nil {
			f.fetching[program] = mine
		}
		f.mu.Unlock()
		if other == nil {
			return func() { f.leave(program, mine) }, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (f *Fetcher) leave(program string, mine chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.fetching, program)
	close(mine)
}

// lock takes the program's lock against goroutines and processes. The kernel
// frees it when its holder dies.
func (f *Fetcher) lock(ctx context.Context, program string) (unlock func(), err error) {
	leave, err := f.enter(ctx, program)
	if err != nil {
		return nil, err
	}
	for {
		file, err := f.tryFlock(program)
		if err == nil {
			return func() { _ = disk.Unlock(file); leave() }, nil
		}
		if !errors.Is(err, disk.ErrLocked) {
			leave()
			return nil, err
		}
		select {
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// tryFlock takes the file lock or answers [disk.ErrLocked]. Lock files stay: to
// remove one while another process waits for it would make two locks of it.
func (f *Fetcher) tryFlock(program string) (*os.File, error) {
	file, err := f.root.OpenFile(lockDir+"/"+program, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock program '%s': %w", program, err)
	}
	if err = disk.Lock(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock program '%s': %w", program, err)
	}
	return file, nil
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
