package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tdf-go/tdf/internal/tools/trial"
)

// defect is one change of one line, and the packages whose tests must notice.
type defect struct {
	what     string
	file     string
	old, new string
	packages []string
}

// texts are the file of the defect as it is in the tree, and with the defect.
func (d *defect) texts(tree string) (sound, broken []byte, err error) {
	sound, err = os.ReadFile(filepath.Join(tree, d.file))
	if err != nil {
		return nil, nil, fmt.Errorf("read: %w", err)
	}
	broken, err = d.in(sound)
	return sound, broken, err
}

// in is the text of the file with the defect.
func (d *defect) in(sound []byte) (broken []byte, err error) {
	if n := bytes.Count(sound, []byte(d.old)); n != 1 {
		return nil, fmt.Errorf("%q stands %d times in %s, want once: bring the list of defects up to date", d.old, n, d.file)
	}
	return bytes.Replace(sound, []byte(d.old), []byte(d.new), 1), nil
}

// fault is the defect as it is tried.
func (d *defect) fault(number int) trial.Fault {
	return trial.Fault{
		Name:  fmt.Sprintf("%d (%s)", number, d.what),
		Cells: []string{strconv.Itoa(number), d.what, d.file},
		Suite: trial.Suite{Packages: d.packages},
		Plant: d.plant,
	}
}

func (d *defect) plant(tree string) (takeBack func() error, err error) {
	sound, broken, err := d.texts(tree)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(tree, d.file)
	if err := os.WriteFile(name, broken, 0o600); err != nil {
		return nil, fmt.Errorf("plant: %w", err)
	}
	return func() error { return os.WriteFile(name, sound, 0o600) }, nil
}
