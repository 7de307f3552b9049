package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/tdf-go/tdf/internal/workdir"
)

// privatePrefix starts the names of the private directories of one worker. No
// name of another worker or namespace can continue it.
func (w *Worker) privatePrefix() string {
	part := func(s string) string { return strings.ReplaceAll(url.PathEscape(s), ".", "%2E") }
	return "tdf." + part(w.opts.Store.Namespace()) + "." + part(w.opts.Name) + "."
}

// makePrivate makes a directory for one round that only the program's user can
// enter.
func (r *round) makePrivate() error {
	w := r.worker
	name := filepath.Join(w.opts.TempDir, fmt.Sprintf("%s%d.%d.", w.privatePrefix(), r.task.ID, r.task.Round))
	var err error
	if r.private, r.made, err = r.slot.spare.Take(name); err == nil {
		return nil
	}
	r.private, err = os.MkdirTemp(filepath.Dir(name), filepath.Base(name)+"*")
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
	uid, gid := w.opts.Container.Owner()
	if uid == os.Geteuid() && gid == os.Getegid() {
		return nil
	}
	return os.Chown(name, uid, gid)
}

// removePrivate removes the directory of the round, if there is one. The slot
// keeps an empty one, under another name, if nothing of the round can be left.
func (r *round) removePrivate() {
	if r.private == "" {
		return
	}
	w := r.worker
	name := filepath.Join(w.opts.TempDir, fmt.Sprintf("%sspare.%d.", w.privatePrefix(), r.slot.index))
	if r.over && r.slot.spare.Keep(r.private, name, r.made) {
		return
	}
	if err := removeTree(r.private); err != nil {
		r.log.Warn().Err(err).Msgf("could not remove the private directory of task %d", r.task.ID)
	}
}

// sweepPrivate removes the private directories that an earlier incarnation of
// this worker has left.
func (w *Worker) sweepPrivate() {
	entries, err := os.ReadDir(w.opts.TempDir)
	if err != nil {
		w.log.Warn().Err(err).Msg("could not look for left-over private directories")
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), w.privatePrefix()) {
			continue
		}
		if err := removeTree(filepath.Join(w.opts.TempDir, e.Name())); err != nil {
			w.log.Warn().Err(err).Msg("could not remove a left-over private directory")
		}
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
