package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tdf-go/tdf/internal/sandbox/remove"
	"github.com/tdf-go/tdf/internal/sandbox/workdir"
)

// makePrivate makes a directory for one round that only the program's user can
// enter.
func (r *round) makePrivate() error {
	w := r.worker
	r.mounted = w.mounts.Now()
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

// removePrivate removes the directory of the round, if there is one, and first what
// the program has left mounted there. The slot keeps an empty one, under another name,
// if nothing of the round can be left.
func (r *round) removePrivate() {
	if r.private == "" {
		return
	}
	w := r.worker
	var err error
	if w.mounts.Now() != r.mounted {
		err = w.mounts.Free(r.private, r.mounted)
	}
	name := filepath.Join(w.privateDir(), fmt.Sprintf("spare.%d.", r.slot.index))
	if err == nil && r.over && r.slot.spare.Keep(r.private, name, r.made) {
		return
	}
	if err == nil {
		err = remove.Tree(r.private)
	}
	if err != nil {
		r.log.Error().Err(err).Str("directory", r.private).Msgf("could not remove the private directory of task %d; leaving it", r.task.ID)
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
		dir := filepath.Join(w.privateDir(), e.Name())
		// What is mounted there now was not mounted by a round of this incarnation.
		err := w.mounts.Free(dir, w.mounts.Now())
		if err == nil {
			err = remove.Tree(dir)
		}
		if err != nil {
			w.log.Error().Err(err).Str("directory", dir).Msg("could not remove a left-over private directory; leaving it")
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
