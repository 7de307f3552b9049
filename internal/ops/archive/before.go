package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/disk"
)

// Range is the ids from the first to the last, both included.
type Range [2]int64

// before is what a directory does not have because it had left Redis when the directory was begun.
type before struct {
	Format    int     `json:"format"`
	Namespace string  `json:"namespace"`
	Epoch     int64   `json:"epoch"`
	Purged    []Range `json:"purged"`
}

const beforeEnd = ".before.json"

func beforeName(namespace string, epoch int64) string {
	return namespace + "-" + strconv.FormatInt(epoch, 10) + beforeEnd
}

// Begin notes which tasks had left Redis before anything of them was written to the directory. epoch is the one in which the ids
// of the namespace began. Only the first note of it counts; purged is asked then.
func Begin(dir, namespace string, epoch int64, purged func() ([]Range, error)) error {
	name := beforeName(namespace, epoch)
	if _, err := readBefore(filepath.Join(dir, name)); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ids, err := purged()
	if err != nil {
		return err
	}
	text, err := json.Marshal(before{Format: Version, Namespace: namespace, Epoch: epoch, Purged: append([]Range{}, ids...)})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return disk.WriteFile(filepath.Join(dir, name), append(text, '\n'), fileMode)
}

// Before are the ids that had left Redis before the directory was begun; none where nobody noted it.
func Before(dir, namespace string, epoch int64) ([]Range, error) {
	b, err := readBefore(filepath.Join(dir, beforeName(namespace, epoch)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b.Purged, err
}

func readBefore(path string) (b before, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal(text, &b); err != nil {
		problem := "does not say what had left Redis before: " + strings.TrimSpace(err.Error())
		return b, &DamageError{Path: path, Problem: problem, Remedy: "restore it from a backup"}
	}
	return b, nil
}
