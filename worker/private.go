package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tdf-go/tdf/internal/workdir"
)

// makePrivate makes a directory for one round that only the program's user can
// enter.
func (r *round) makePrivate() error {
	w := r.worker
	name := fmt.Sprintf("%d.%d.", r.task.ID, r.task.Round)
	var err error
	if r.private, r.made, err = r.slot.spare.Take(filepath.Join(w.privateDir(), name)); err == nil {
		return nil
	}
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
	if err == nil {
		err = w.giveAway(r.private)
	}
	if err == nil {
		r.made, err = workdir.Look(r.private)
	}
	if err != nil {
		return fmt.Errorf("could not make the private directory of the round at worker '%s': %w", w.opts.Name, err)
	}
	return nil
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
	uid, gid = w.opts.Container.Owner()
	return uid, gid, uid != os.Geteuid() || gid != os.Getegid()
}

// removePrivate removes the directory of the round, if there is one. The slot
// keeps an empty one, under another name, if nothing of the round can be left.
func (r *round) removePrivate() {
	if r.private == "" {
		return
	}
	w := r.worker
	name := filepath.Join(w.privateDir(), fmt.Sprintf("spare.%d.", r.slot.index))
	if r.over && r.slot.spare.Keep(r.private, name, r.made) {
		return
	}
	if err := removeTree(r.private); err != nil {
		r.log.Warn().Err(err).Msgf("could not remove the private directory of task %d", r.task.ID)
	}
}

// sweepPrivate makes the directory of the private directories, and removes what
// an earlier incarnation of this worker has left in it.
func (w *Worker) sweepPrivate() {
	if err := w.ensurePrivateDir(); err != nil {
		w.log.Warn().Err(err).Msg("cannot make private directories; programs cannot be run")
		return
	}
	entries, err := os.ReadDir(w.privateDir())
	if err != nil {
		w.log.Warn().Err(err).Msg("could not look for left-over private directories")
		return
	}
	for _, e := range entries {
		if err := removeTree(filepath.Join(w.privateDir(), e.Name())); err != nil {
			w.log.Warn().Err(err).Msg("could not remove a left-over private directory")
		}
	}
}

// removePrivateDir is for the end; what is not empty stays for the next start.
func (w *Worker) removePrivateDir() {
	if w.opts.Container == nil {
		return
	}
	if err := os.Remove(w.privateDir()); err != nil {
		w.log.Debug().Err(err).Msg("could not remove the directory of private directories")
	}
}

// removeTree removes a directory, also where a program has left parts of it
// read-only, as module caches are.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	chmodErr := makeWritable(dir)
	if err = os.RemoveAll(dir); err == nil {
		return nil
	}
	return errors.Join(err, chmodErr)
}

// makeWritable opens all directories below dir; it follows no link.
func makeWritable(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open private directory: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is written through it
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return root.Chmod(name, 0o700)
	})
	if err != nil {
		return fmt.Errorf("make private directory writable: %w", err)
	}
	return nil
}
