package fetch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/task"
)

// Do does an errand: it returns the versions that are meant, and removes them if that is asked for. One whose Kept is
// not empty is still there. The error is that of [task.Errand.Check], or of ctx. Names only select among what is
// there: no path is made of them.
func (f *Fetcher) Do(ctx context.Context, e *task.Errand) ([]task.StoredVersion, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	found := f.meant(e)
	all := make([]task.StoredVersion, 0, len(found))
	patience := time.Now().Add(heldPatience)
	for i := range found {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		v := f.describe(&found[i])
		if e.Remove {
			switch err := f.away(ctx, &found[i], e, patience); {
			case errors.Is(err, fs.ErrNotExist): // somebody else was quicker, or it is in use again
				continue
			case errors.Is(err, disk.ErrLocked):
				v.Kept = "its program is being fetched, or removed by another worker"
			case err != nil:
				v.Kept = err.Error()
			default:
				v.Removed = true
			}
		}
		all = append(all, v)
	}
	return all, nil
}

// meant are the versions of an errand, those that were put there by hand with an empty hash.
func (f *Fetcher) meant(e *task.Errand) (found []stored) {
	for _, v := range append(f.versions(), f.byHands()...) {
		if e.Means(v.program, v.hash) && !f.recent(&v, e) {
			found = append(found, v)
		}
	}
	return found
}

// recent reports whether an errand leaves a version out by its last use.
func (f *Fetcher) recent(v *stored, e *task.Errand) bool {
	return e.UnusedFor > 0 && (v.hash == "" || time.Since(v.used) < time.Duration(e.UnusedFor))
}

// byHands are the programs that were put there by hand.
func (f *Fetcher) byHands() (found []stored) {
	programs, _ := fs.ReadDir(f.root.FS(), ".") // what cannot be read is not shown
	for _, entry := range programs {
		program, dir := entry.Name(), filepath.Join(f.opts.Dir, entry.Name())
		if task.ValidProgram(program) != nil || !entry.IsDir() {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, runFile)); err == nil {
			found = append(found, stored{program: program, dir: dir})
		}
	}
	return found
}

// describe looks into the directory of a version.
func (f *Fetcher) describe(v *stored) task.StoredVersion {
	d := task.StoredVersion{Program: v.program, SHA256: v.hash, Used: v.used}
	if v.hash == "" {
		e := measure(v.dir, func(dir string) bool { return filepath.Dir(dir) == v.dir && isHash(filepath.Base(dir)) })
		d.Bytes, d.Files = e.bytes, e.files
		return d
	}
	e := f.extent(v.dir)
	d.Bytes, d.Files = e.bytes, e.files-1 // without the manifest
	if m, _, err := readManifest(v.dir, v.program); err == nil {
		if d.Source = printable(clean.Source(m.Source)); f.installed(v.program, v.hash) {
			d.Installed = m.Fetched
		}
	}
	return d
}

// heldPatience is how long an errand waits for slots that hold what it names: those of other workers let go of it
// when they hear of the same errand.
const heldPatience = time.Second

// away removes a version. The error matches fs.ErrNotExist if it is gone, or was used meanwhile.
func (f *Fetcher) away(ctx context.Context, v *stored, e *task.Errand, patience time.Time) error {
	if v.hash == "" {
		return errors.New("it was put there by hand; remove " + v.dir + " on its host")
	}
	for {
		info, err := os.Lstat(filepath.Join(v.dir, manifestFile))
		if err != nil {
			return err
		}
		if v.used = info.ModTime(); f.recent(v, e) {
			return fs.ErrNotExist
		}
		err = f.remove(v, "")
		again := errors.Is(err, errHeld) && e.UnusedFor == 0 || errors.Is(err, disk.ErrLocked)
		if !again || time.Now().After(patience) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPoll):
		}
	}
}
