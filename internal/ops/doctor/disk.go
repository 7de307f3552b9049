package doctor

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/disk"
)

// Place is a directory of a worker on this host.
type Place struct {
	// Setting names the key of [worker], Path is the directory.
	Setting, Path string
	// Free is how many bytes are free there, unless Err says why that is not known.
	Free uint64
	Err  error
}

// places looks at the directories of a worker. One that is not there yet is looked at
// where it would be made.
func places(w *config.Worker) []Place {
	program := w.ProgramDir
	if program == "" {
		program = "."
	}
	spool, temp := w.SpoolDir, w.TempDir
	if spool == "" {
		spool = filepath.Join(program, ".tdf", "spool")
	}
	if temp == "" {
		temp = os.TempDir()
	}
	all := []Place{{Setting: "program_dir", Path: program}, {Setting: "spool_dir", Path: spool}, {Setting: "temp_dir", Path: temp}}
	for i := range all {
		all[i].Free, all[i].Err = disk.Free(existing(all[i].Path))
	}
	return all
}

// existing is the nearest directory above that is there.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// Bounds of free space.
const (
	freeWarn = 1 << 30
	freeFail = 64 << 20
)

func judgeDisk(f *Facts) []Finding {
	const check = "disk"
	if len(f.Places) == 0 {
		return skip(check, "not checked: the configuration has no [worker]; the disk of Redis cannot be seen from here")
	}
	var found []Finding
	for _, p := range f.Places {
		text := fmt.Sprintf("%s %s: %d MiB free", p.Setting, p.Path, p.Free/mib)
		remedy := "make room there, or name another directory"
		switch {
		case p.Err != nil:
			found = append(found, warn(check, p.Setting+" "+p.Path+": "+p.Err.Error(), "check the path and the permissions")...)
		case p.Free == disk.Unknown:
			found = append(found, skip(check, p.Setting+" "+p.Path+": not checked, a file system without a size")...)
		case p.Free < freeFail:
			found = append(found, fail(check, text, remedy)...)
		case p.Free < freeWarn:
			found = append(found, warn(check, text, remedy)...)
		default:
			found = append(found, ok(check, text)...)
		}
	}
	return found
}
