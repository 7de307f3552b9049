package archive

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Modes of what is made: tasks may hold what is not for everybody. A directory that is there already keeps its own mode, so that
// an operator may let a group read.
const (
	dirMode  = 0o700
	fileMode = 0o640
)

// segmentName finds the namespace in the name of a segment, and whether that still grows.
var segmentName = regexp.MustCompile(`^(.+)-\d{8}T\d{6}Z-[0-9a-f]{8}\.jsonl\.zst(\.part)?$`)

// newName is the name of a segment that begins now.
func newName(namespace string, now time.Time) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return fmt.Sprintf("%s-%s-%s.jsonl.zst", namespace, now.UTC().Format("20060102T150405Z"), hex.EncodeToString(random[:]))
}

// names are the segments and parts of a namespace in a directory, by name; the order is that in which they were begun.
func names(dir, namespace string) (segments, parts []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		switch found := segmentName.FindStringSubmatch(e.Name()); {
		case found == nil || found[1] != namespace:
		case found[2] == "":
			segments = append(segments, e.Name())
		default:
			parts = append(parts, e.Name()[:len(e.Name())-len(partEnd)])
		}
	}
	return segments, parts, nil
}

// Namespaces are those of which there are segments in a directory, in order.
func Namespaces(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if found := segmentName.FindStringSubmatch(e.Name()); found != nil {
			all = append(all, found[1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// removed removes a file that need not be there.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lock takes the lock of a part, and reports whether it was free and the file is still the one of that name: it may have been
// sealed or removed meanwhile.
func lock(f *os.File) (mine bool, err error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return inPlace(f)
}

// inPlace reports whether the file is the one that its name stands for.
func inPlace(f *os.File) (bool, error) {
	there, err := os.Stat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mine, err := f.Stat()
	return err == nil && os.SameFile(there, mine), err
}
