package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/sandbox/remove"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/sandbox/workdir"
	"github.com/tdf-go/tdf/task"
)

// held is the private directory that a slot keeps, and what the slot knows of the program
// that it ran last.
type held struct {
	workdir.Dir
	looked bool          // it was found clean, and the slot has not rested since
	mounts *remove.Table // what was mounted when that was last known to be clean
	of     fetch.Version
	keeps  atomic.Pointer[kept] // what it ran last, which is not removed meanwhile; nil for nothing
	free   func()               // gives that up
	small  *workdir.Tree        // what of holds, if that is small
	stdin  *disk.Scratch        // what a program of the slot has read last; nil for nothing
}

// kept is a version that a slot keeps, with the task that it ran last, and since when in Unix seconds.
type kept struct {
	fetch.Version

	task, used atomic.Int64
}

// place is where a round runs.
type place struct {
	shared  bool          // with other rounds of its program
	dir     string        // its working directory
	private string        // its private directory, once made; the same unless it is shared
	view    shim.View     // of the program
	mounted *remove.Table // before the private directory was made or taken again
	stdin   *os.File      // what the program reads; nil for nothing
}

// prepare makes the round's directory with its contents.
func (r *round) prepare(ctx context.Context, v fetch.Version) error {
	if err := r.checkWords(); err != nil {
		return err
	}
	if r.Spec.Variables != nil || r.Spec.Return != nil || r.Spec.Params != nil {
		if err := r.checkFields("variables", "return", "return_to", "params"); err != nil {
			return err
		}
	}
	if err := r.makePlace(ctx, v); err != nil {
		return fmt.Errorf("could not make the directory of the round at worker '%s': %w", r.worker.opts.Name, err)
	}
	if err := r.writeArguments(); err != nil || r.Spec.Stdin == "" {
		return err
	}
	return r.openStdin(ctx)
}

func (r *round) makePlace(ctx context.Context, v fetch.Version) (err error) {
	w := r.worker
	own := r.Spec.Workdir
	r.shared = r.command == "" && (own == task.WorkdirShared || own != task.WorkdirPrivate && w.opts.Workdir == task.WorkdirShared)
	if filepath.Base(v.Dir) == v.SHA256 && w.opts.container.Views() {
		r.view.Store = filepath.Dir(v.Dir)
	}
	if err = r.makePrivate(ctx, v); err != nil || !r.shared {
		r.dir = r.private
		return err
	}
	r.dir = v.Dir
	if v.SHA256 != "" {
		r.dir, err = w.sharedCopy(ctx, r.Spec.Program, v)
	}
	return err
}

// makePrivate makes a directory for one round that only the program's user can enter,
// with the files of the program unless the round runs elsewhere, or takes the one that
// the slot has kept.
func (r *round) makePrivate(ctx context.Context, v fetch.Version) error {
	w, h := r.worker, &r.slot.held
	how, err := r.showing(v)
	if err != nil {
		return err
	}
	var small *workdir.Tree
	if how == bySmallCopy {
		small = h.small
	}
	if how.lasts() && h.Shows(small) && (h.looked || h.Clean()) {
		r.private, r.mounted = h.Path(), h.mounts
		return nil
	}
	if err := h.drop(); err != nil {
		r.log.Warn("could not remove the private directory of a slot", "error", err, "slot", r.slot.index)
	}
	r.mounted = w.mounts.Now()
	if err := r.newPrivate(); err != nil {
		return err
	}
	switch how {
	case byOverlay:
		r.view.Lower, r.view.Work = v.Dir, r.private+overlaid
		err = os.Mkdir(r.view.Work, 0o700)
	case bySmallCopy:
		err = w.opts.container.AsOwner(func() error { return small.Fill(r.private) })
	case byCopy:
		err = w.opts.container.AsOwner(func() error { return workdir.Copy(ctx, v.Dir, r.private) })
	case byNothing:
	}
	if err != nil || !how.lasts() {
		return err
	}
	return h.Hold(r.private, small)
}

// how a private directory shows the files of a program.
type how int

const (
	byNothing   how = iota // the program runs elsewhere
	bySmallCopy            // one that a slot looks through after each round
	byOverlay
	byCopy
)

// lasts reports whether a slot can keep the directory for another round: the kernel does
// not see what is done below an overlay, and a large copy is not looked through.
func (h how) lasts() bool { return h == byNothing || h == bySmallCopy }

// showing finds out how the files are to be shown.
func (r *round) showing(v fetch.Version) (how, error) {
	w, h := r.worker, &r.slot.held
	if r.shared || v.Dir == "" {
		return byNothing, nil
	}
	if err := h.know(v, w.opts.container.AsOwner); err != nil {
		return byNothing, err
	}
	_, _, other := w.owner()
	switch {
	case h.small != nil:
		return bySmallCopy, nil
	case other || !w.opts.container.Views(): // another user could not write to all that an overlay shows
		return byCopy, nil
	}
	return byOverlay, nil
}

// overlaid ends the name of the directory that the kernel has for an overlay.
const overlaid = ".overlay"

// know makes the slot know what a program holds: a version never changes, but what was
// put there by hand may.
func (h *held) know(v fetch.Version, asOwner func(func() error) error) error {
	if h.of == v && v.SHA256 != "" {
		return nil
	}
	return asOwner(func() (err error) {
		if h.of == v && h.small != nil && h.small.Current() {
			return nil
		}
		h.of = fetch.Version{}
		if h.small, err = workdir.Read(v.Dir, h.small); err == nil {
			h.of = v
		}
		return err
	})
}

// keep keeps a version from being removed, for a task, and no other one.
func (h *held) keep(v fetch.Version, task int64) error {
	k := h.keeps.Load()
	if k == nil || k.Version != v {
		free, err := v.Hold()
		if err != nil {
			return err
		}
		if h.free != nil {
			h.free()
		}
		k, h.free = &kept{Version: v}, free
		h.keeps.Store(k)
	}
	k.task.Store(task)
	k.used.Store(time.Now().Unix())
	return nil
}

// letGo keeps no version any more.
func (h *held) letGo() {
	if h.free != nil {
		h.free()
	}
	h.free = nil
	h.keeps.Store(nil)
}

// drop keeps the directory no longer. One that was changed while no round had it is left
// to the process that has changed it.
func (h *held) drop() error {
	path, clean := h.Path(), h.Clean()
	h.Forget()
	if !clean {
		return nil
	}
	return removeBoth(path)
}

// removeBoth removes a private directory and what the kernel has for its overlay.
func removeBoth(path string) error {
	return errors.Join(remove.Tree(path), remove.Tree(path+overlaid))
}

// newPrivate makes an empty private directory.
func (r *round) newPrivate() (err error) {
	w := r.worker
	name := fmt.Sprintf("slot.%d.", r.slot.index)
	if home := w.privateDir(); home != "" {
		r.private, err = os.MkdirTemp(home, name+"*")
	} else {
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) { // somebody cleans the directory of temporary files
		if err = w.ensurePrivateDir(); err == nil {
			r.private, err = os.MkdirTemp(w.privateDir(), name+"*")
		}
	}
	if err != nil {
		return err
	}
	return w.giveAway(r.private)
}

// sharedCopy is where all rounds of a version run that share their directory. It stays.
func (w *Worker) sharedCopy(ctx context.Context, program string, v fetch.Version) (string, error) {
	above := filepath.Join(w.opts.ProgramDir, ".tdf", "shared", program)
	dir := filepath.Join(above, v.SHA256)
	w.sharing.Lock()
	defer w.sharing.Unlock()
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	fresh := dir + "." + filepath.Base(w.privateDir()) // no other worker's
	err := errors.Join(os.MkdirAll(above, 0o755), remove.Tree(fresh))
	if err == nil {
		err = os.Mkdir(fresh, 0o755)
	}
	if err == nil {
		err = w.giveAway(fresh)
	}
	if err == nil {
		err = w.opts.container.AsOwner(func() error { return workdir.Copy(ctx, v.Dir, fresh) })
	}
	if err == nil {
		if err = os.Rename(fresh, dir); errors.Is(err, fs.ErrExist) {
			err = nil // another worker was quicker
		}
	}
	return dir, errors.Join(err, remove.Tree(fresh))
}

// giveAway makes a file the property of the user that programs run as.
func (w *Worker) giveAway(name string) error {
	uid, gid, other := w.owner()
	if !other {
		return nil
	}
	return os.Chown(name, uid, gid)
}

// owner is the user that programs run as, and whether that is not the worker's own.
func (w *Worker) owner() (uid, gid int, other bool) {
	return w.opts.container.Owner()
}

// removePrivate removes the directory of the round, if there is one, and first what
// the program has left mounted there. The slot keeps the directory of a small program if
// all that the round has left there could be removed.
func (r *round) removePrivate() {
	if r.private == "" {
		return
	}
	w, h := r.worker, &r.slot.held
	var err error
	now := w.mounts.Now()
	if now != r.mounted {
		w.flush()
		err = w.mounts.Free(r.private, r.mounted)
		now = w.mounts.Now() // the ids of what is gone may be given to others
	}
	if err == nil && r.over && h.Restore(r.alone, remove.In) {
		h.looked, h.mounts = true, now
		return
	}
	h.Forget()
	w.flush() // it may take a while
	if err == nil {
		err = removeBoth(r.private)
	}
	if err != nil {
		r.log.Error(fmt.Sprintf("could not remove the private directory of task %d; leaving it", r.Task.ID),
			"error", err, "directory", r.private)
	}
}
