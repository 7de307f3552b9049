package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// DraftEnd ends the name of what [WriteFile] is writing. A draft that is left after a crash is written over the next time.
const DraftEnd = ".tmp"

// WriteFile writes text to a file: afterwards, and after a crash at any moment, the file of that name is absent, the
// old one or the new one, never a part. When it returns nil the new one is on the disk. It replaces a file with another mode.
// Two calls for one name must not overlap. The error wraps the system's.
func WriteFile(name string, text []byte, mode fs.FileMode) error {
	draft := name + DraftEnd
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(draft, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return SyncDir(filepath.Dir(name))
}

// SyncDir puts on the disk which files a directory has: without it a crash may undo what was made, renamed or removed there.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
