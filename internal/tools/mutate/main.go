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
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
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

func packagesOf(all []defect) []string {
	seen := map[string]bool{}
	var packages []string
	for _, d := range all {
		for _, p := range d.packages {
			if !seen[p] {
				seen[p] = true
				packages = append(packages, p)
			}
		}
	}
	return packages
}
