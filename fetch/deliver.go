package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/sandbox/remove"
	"github.com/tdf-go/tdf/task"
)

// ErrUndelivered says that what a round returns cannot be put where it is to go.
var ErrUndelivered = errors.New("not delivered")

// Return says what a round returns, and where to.
type Return struct {
	// To is the destination (see [task.ParseDestination]), Task and Round name the round.
	To    string
	Task  int64
	Round int
	// Dir, Base and Patterns are as for [PackFiles].
	Dir, Base string
	Patterns  []string
	// Streams, unless nil, are what is returned instead, by name: what the program wrote. They have a place of their own.
	Streams map[string]*os.File
	// As runs what reads below Dir and what writes to a directory, with the rights of the user whom the program runs as: what that one
	// may not write is not written for it.
	As func(func() error) error
	// Scratch is a directory of the caller alone, for what is on its way. Of a caller that was killed give it to [Fetcher.Abandon] later.
	Scratch string
}

// Parcel is what a round returns, before it has its name at the destination. Close it.
type Parcel struct {
	// Count is how many files there are. Missing are the patterns that matched none.
	Count   int
	Missing []string

	bytes   int64
	fetcher *Fetcher
	of      Return
	to      task.Source
	name    string   // of the directory at the destination
	stage   string   // in Scratch
	at      *os.Root // the destination, if it is a directory
	files   *os.Root // the directory that is filled
	sent    bool     // rsync may have left something
}

const (
	stagedTo    = "to"    // in a stage: the destination, for Abandon
	stagedFiles = "files" // what rsync sends
	stagedNone  = "none"  // what rsync removes the rest by
)

// Collect copies the files of a round beside the place where they are to go, or, for rsync, to Scratch. All of them together, each of
// them, and their number have the limits of a program (Options.MaxBytes, MaxFileBytes, MaxEntries). The error matches [ErrUndelivered] if
// it is one of the destination, and of no file.
func (f *Fetcher) Collect(ctx context.Context, r Return) (*Parcel, error) {
	to, err := task.ParseDestination(r.To)
	if err != nil {
		return nil, undelivered("destination "+redact(r.To), err)
	}
	p := &Parcel{fetcher: f, of: r, to: to, name: path.Base(task.ReturnedTo(r.To, r.Task, r.Round))}
	if r.Streams != nil {
		p.name += task.StreamsSuffix
	}
	p.stage = filepath.Join(r.Scratch, stagePrefix+p.name)
	if err = p.begin(); err == nil {
		err = p.collect(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	return p, nil
}

// stagePrefix begins the names of the directories in Return.Scratch.
const stagePrefix = "return."

// begin makes an empty directory for the files.
func (p *Parcel) begin() error {
	dir := filepath.Join(p.stage, stagedFiles)
	err := remove.Tree(p.stage)
	if err == nil {
		err = os.Mkdir(p.stage, 0o700)
	}
	switch {
	case err != nil:
	case p.to.Kind == task.SourceLocal:
		if err = p.note(); err == nil {
			return p.failed(p.of.As(p.beginThere))
		}
	default:
		if err = os.Mkdir(dir, 0o755); err == nil {
			p.files, err = os.OpenRoot(dir)
		}
	}
	return p.notStaged(err)
}

// note tells [Fetcher.Abandon] that there is something at the destination, soon, and that it is of this round.
func (p *Parcel) note() error {
	return os.WriteFile(filepath.Join(p.stage, stagedTo), []byte(p.to.Location), 0o600)
}

// failed is an error of the destination, notStaged one of the way to it.
func (p *Parcel) failed(err error) error {
	return undelivered("destination "+redact(p.to.Location), err)
}

func (p *Parcel) notStaged(err error) error { return undelivered("directory "+printable(p.stage), err) }

// draft is the directory beside the one of a round that is filled.
func draft(name string) string { return disk.Reserved + name }

// beginThere makes the directory at the destination. What earlier rounds of the task have left there, whose worker was killed, goes.
func (p *Parcel) beginThere() (err error) {
	if p.at, err = os.OpenRoot(p.to.Path); err != nil {
		return err
	}
	if _, err = p.at.Lstat(p.name); err == nil {
		return p.exists()
	}
	there, err := p.at.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = there.Close() }() // nothing is written through it
	for round := range p.of.Round {
		name := draft(path.Base(task.ReturnedTo("", p.of.Task, round)))
		_ = errors.Join(remove.In(there, name), remove.In(there, name+task.StreamsSuffix)) // it is in nobody's way
	}
	if err = remove.In(there, draft(p.name)); err != nil {
		return err
	}
	if err = p.at.Mkdir(draft(p.name), 0o755); err == nil {
		p.files, err = p.at.OpenRoot(draft(p.name))
	}
	return err
}

// exists is the error about a round that has been there.
func (p *Parcel) exists() error {
	return fmt.Errorf("%s is there already, from before a flush or from another namespace; move it away, or name another directory", p.name)
}

// collect copies the files: it reads them as the program's user, and writes as that one too, but for rsync.
func (p *Parcel) collect(ctx context.Context) error {
	opts := p.fetcher.opts
	t := newTree(p.files, &budget{opts: &opts, archive: math.MaxInt64})
	put := func(name string, file *os.File) error { return p.put(ctx, t, name, file) }
	if p.to.Kind != task.SourceLocal {
		var done func()
		put, done = byAnother(put)
		defer done()
	}
	err := p.of.As(func() error {
		if p.of.Streams != nil {
			p.Count = len(p.of.Streams)
			return eachNamed(p.of.Streams, put)
		}
		root, err := os.OpenRoot(p.of.Dir)
		if err != nil {
			return err
		}
		defer func() { _ = root.Close() }() // nothing is written through it
		c := newChooser(root, p.of.Base, p.of.Patterns)
		err = c.each(ctx, put)
		p.Count, p.Missing = c.count, c.missing()
		return err
	})
	p.bytes = t.budget.bytes
	if limit, ok := errors.AsType[*limitError](err); ok {
		remedy := "return less"
		if limit.of.option != "" {
			remedy += ", or raise " + setting(limit.of.option)
		}
		err = fmt.Errorf("%w: %s; %s", ErrLimit, limit.what(), remedy)
	}
	return err
}

// put copies a file, as long as it is now: what has no room is refused before it is read.
func (p *Parcel) put(ctx context.Context, t *tree, name string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err = t.budget.fits(name, info.Size()); err == nil {
		err = t.budget.addEntry()
	}
	if err == nil {
		err = t.addFile(ctx, name, info.Mode(), io.LimitReader(file, info.Size()))
	}
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, ErrLimit), errors.Is(err, errArchive):
		return err
	case p.to.Kind == task.SourceLocal:
		return p.failed(err)
	default:
		return p.notStaged(err)
	}
}

// byAnother makes another goroutine put files, which has not the rights of the caller. done ends it.
func byAnother(put putFile) (asking putFile, done func()) {
	type order struct {
		name string
		file *os.File
	}
	orders, answers := make(chan order), make(chan error)
	go func() {
		for o := range orders {
			answers <- put(o.name, o.file)
		}
	}()
	return func(name string, file *os.File) error {
		orders <- order{name, file}
		return <-answers
	}, func() { close(orders) }
}

// Deliver gives the files their place at the destination, all at once, and returns what to record. The error matches [ErrUndelivered].
func (p *Parcel) Deliver(ctx context.Context) (task.Files, error) {
	err := context.Cause(ctx)
	switch {
	case err != nil:
	case p.to.Kind == task.SourceLocal:
		err = p.of.As(p.rename)
	default:
		err = p.send(ctx)
	}
	if err != nil {
		return task.Files{}, p.failed(withCause(ctx, err))
	}
	p.sent = false
	return task.Files{Bytes: p.bytes, Count: p.Count}, nil
}

// rename does not replace a directory that holds something, and follows no link.
func (p *Parcel) rename() error {
	if !p.ours() {
		return fmt.Errorf("%s has been removed or replaced meanwhile, as by another namespace that returns files here; "+
			"name another directory", draft(p.name))
	}
	if err := syncDirs(p.files, "."); err != nil {
		return err
	}
	switch err := p.at.Rename(draft(p.name), p.name); {
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.ENOTDIR):
		return p.exists()
	case err != nil:
		return err
	}
	return disk.SyncIn(p.at, ".")
}

// ours reports whether the draft at the destination is the directory that was filled.
func (p *Parcel) ours() bool {
	there, err1 := p.at.Lstat(draft(p.name))
	filled, err2 := p.files.Stat(".")
	return err1 == nil && err2 == nil && os.SameFile(there, filled)
}

// send transfers the files by rsync, which gives them their names when it has all of them.
func (p *Parcel) send(ctx context.Context) error {
	if err := p.look(ctx); err == nil {
		return p.exists()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := p.note(); err != nil {
		return p.notStaged(err)
	}
	p.sent = true
	return p.rsync(ctx, []string{stagedFiles + "/", p.there() + "/"}, "--recursive", "--perms", "--delay-updates")
}

// there is where rsync puts the files.
func (p *Parcel) there() string { return p.to.Path + "/" + p.name }

// look is an error unless something is there.
func (p *Parcel) look(ctx context.Context) error {
	return p.rsync(ctx, []string{p.there()}, "--list-only")
}

// rsync runs it in the stage.
func (p *Parcel) rsync(ctx context.Context, paths []string, flags ...string) error {
	dir, err := os.Open(p.stage)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // nothing is written through it
	_, err = p.fetcher.rsyncIn(ctx, dir, slices.Concat(p.fetcher.remoteArgs(p.to.Kind), flags, []string{"--"}, paths))
	return err
}

// tidyTime bounds the removal of what a transfer has left that broke off.
const tidyTime = 10 * time.Second

// Close removes what was not delivered, also once ctx is done.
func (p *Parcel) Close(ctx context.Context) error {
	var errs []error
	if p.at != nil {
		errs = append(errs, p.of.As(p.removeDraft), p.at.Close())
	}
	if p.files != nil {
		errs = append(errs, p.files.Close())
	}
	if p.sent {
		errs = append(errs, p.unsend(ctx))
	}
	return errors.Join(append(errs, remove.Tree(p.stage))...)
}

// removeDraft removes what was not renamed, and nothing that is another's by now.
func (p *Parcel) removeDraft() error {
	if p.files != nil && !p.ours() {
		return nil
	}
	dir, err := p.at.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // nothing is written through it
	return remove.In(dir, draft(p.name))
}

// unsend removes the directory of the round at the destination, if it is there, and nothing else.
func (p *Parcel) unsend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	if p.look(ctx) != nil { // it is not there, or cannot be reached, which who sent it was told
		return nil
	}
	if err := os.Mkdir(filepath.Join(p.stage, stagedNone), 0o700); err != nil {
		return err
	}
	return p.rsync(ctx, []string{stagedNone + "/", p.to.Path + "/"},
		"--recursive", "--delete", "--include=/"+p.name, "--include=/"+p.name+"/**", "--exclude=*")
}

// Abandon removes what was on its way when a process was killed, whose Return.Scratch that directory was. as is like Return.As. It takes
// little longer than for one parcel, also where rsync's host is away.
func (f *Fetcher) Abandon(ctx context.Context, scratch string, as func(func() error) error) error {
	entries, err := os.ReadDir(scratch)
	errs := make([]error, 1+len(entries))
	errs[0] = err
	var all sync.WaitGroup
	for i, e := range entries {
		if name, is := strings.CutPrefix(e.Name(), stagePrefix); is {
			p := &Parcel{fetcher: f, of: Return{As: as}, name: name, stage: filepath.Join(scratch, e.Name())}
			all.Go(func() { errs[1+i] = p.abandon(ctx) })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// abandon closes a parcel of which only the stage is left.
func (p *Parcel) abandon(ctx context.Context) error {
	text, _ := os.ReadFile(filepath.Join(p.stage, stagedTo))
	to, err := task.ParseDestination(string(text))
	if err != nil { // it was killed before anything was on its way
		return remove.Tree(p.stage)
	}
	if p.to, p.sent = to, to.Kind != task.SourceLocal; !p.sent {
		err = p.of.As(func() (err error) {
			p.at, err = os.OpenRoot(to.Path)
			return err
		})
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return p.failed(errors.Join(err, p.Close(ctx)))
}

// PackDelivered packs what a round has returned to a directory, task.Files.To, as [PackFiles] does, and returns how many files that are.
// Others may write there: it follows no link.
func PackDelivered(ctx context.Context, w io.Writer, to string) (count int, err error) {
	src, err := task.ParseDestination(to)
	if err == nil && src.Kind != task.SourceLocal {
		err = errors.New("they can be read by rsync only")
	}
	if err != nil {
		return 0, err
	}
	at, err := os.OpenRoot(filepath.Dir(src.Path))
	if err != nil {
		return 0, err
	}
	defer func() { _ = at.Close() }() // nothing is written through it
	name := filepath.Base(src.Path)
	info, err := at.Lstat(name)
	if err == nil && !info.IsDir() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return 0, err
	}
	root, err := at.OpenRoot(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }() // nor through it
	count, _, err = packFiles(ctx, w, newChooser(root, "", []string{"."}))
	return count, err
}

// undelivered says what it is that has failed.
func undelivered(where string, err error) error {
	if err == nil || errors.Is(err, ErrUndelivered) {
		return err
	}
	return &undeliveredError{where, err}
}

// undeliveredError matches ErrUndelivered.
type undeliveredError struct {
	where string
	err   error
}

// Error says where it was, and the remedy if that is known.
func (e *undeliveredError) Error() string {
	text := e.where + ": " + printable(clean.URLs(e.err.Error()))
	switch {
	case disk.Full(e.err):
		text += "; make room there"
	case errors.Is(e.err, fs.ErrPermission):
		text += "; it is written as the user that programs run as, who must be allowed to"
	case errors.Is(e.err, fs.ErrNotExist):
		text += "; make the directory, at each worker"
	}
	return text
}

// Is implements [errors.Is].
func (e *undeliveredError) Is(target error) bool { return target == ErrUndelivered }

// Unwrap gives the cause.
func (e *undeliveredError) Unwrap() error { return e.err }
