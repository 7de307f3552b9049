// The command mutate shows that the tests can fail. It plants one defect at a
// time, each a change of a single line, in a copy of the tree, runs the tests
// that must notice, and prints a table. Then it lets the programs read the
// default of one configuration key at a time instead of its value: one of the
// tests that docs/ACCEPTANCE.md names for the key must notice. It ends with an
// error if a defect or a default survives.
//
//	go run ./internal/tools/mutate [-settings] [-only TEXT]
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/tools/trial"
)

func main() {
	only := flag.String("only", "", "plant only the defects whose description contains this text, and forget only such keys")
	keys := flag.Bool("settings", false, "plant no defects, only forget the values of keys")
	flag.Parse()
	var err error
	if !*keys {
		err = run(*only)
	}
	if err = errors.Join(err, known(*only), trySettings(os.Stdout, ".", *only)); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// known refuses a text that neither a defect nor a key contains.
func known(only string) error {
	for i := range defects {
		if strings.Contains(defects[i].what, only) {
			return nil
		}
	}
	if !slices.ContainsFunc(config.Keys(), func(key string) bool { return strings.Contains(key, only) }) {
		return fmt.Errorf("no defect and no key contains %q", only)
	}
	return nil
}

func run(only string) error {
	chosen := slices.DeleteFunc(slices.Clone(defects), func(d defect) bool { return !strings.Contains(d.what, only) })
	if len(chosen) == 0 {
		return nil
	}
	t := trial.Table{Columns: []string{"#", "defect", "in"}, Sound: []trial.Suite{{Packages: packagesOf(chosen)}}}
	for i := range chosen {
		t.Faults = append(t.Faults, chosen[i].fault(i+1))
	}
	return t.Print(os.Stdout, ".")
}

func packagesOf(all []defect) (packages []string) {
	for _, d := range all {
		packages = append(packages, d.packages...)
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

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
