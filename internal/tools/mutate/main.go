// The command mutate shows that the tests can fail. It plants one defect at a
// time, each a change of a single line, in a copy of the tree, runs the tests
// that must notice, and prints a table. It ends with an error if a defect
// survives.
//
//	go run ./internal/tools/mutate [-only TEXT]
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/tools/trial"
)

func main() {
	only := flag.String("only", "", "plant only the defects whose description contains this text")
	flag.Parse()
	if err := run(*only); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(only string) error {
	tree, err := trial.Copy(".")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tree) }()
	chosen := slices.DeleteFunc(slices.Clone(defects), func(d defect) bool { return !strings.Contains(d.what, only) })
	if len(chosen) == 0 {
		return fmt.Errorf("no defect contains %q", only)
	}
	if r := (trial.Suite{Packages: packagesOf(chosen)}).Try(tree); !r.Green {
		return fmt.Errorf("the tests fail without any defect:\n%s", r.Output)
	}
	fmt.Println("| # | defect | in | found by | seconds |\n|---|---|---|---|---|")
	survived := 0
	for i, d := range chosen {
		began := time.Now()
		red, err := d.try(tree)
		if err != nil {
			return fmt.Errorf("defect %d (%s): %w", i+1, d.what, err)
		}
		if red == "" {
			red = "**nothing: it survived**"
			survived++
		}
		fmt.Printf("| %d | %s | %s | %s | %.0f |\n", i+1, d.what, d.file, red, time.Since(began).Seconds())
	}
	if survived > 0 {
		return fmt.Errorf("%d defects survived", survived)
	}
	return nil
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
