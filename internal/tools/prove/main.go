// The command prove shows that the suite would have found the bugs that other
// queues had, and the original of this one. It brings them back one at a time, in
// a copy of the tree, runs the smallest test that must notice, and prints a table.
// It ends with an error if a bug survives. The bugs are the patches in
// test/prove/patches.
//
//	go run ./internal/tools/prove [-bug NAME]
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
	name := flag.String("bug", "", "bring back this one only")
	flag.Parse()
	if err := run(*name); err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
}

func run(name string) error {
	chosen, err := choose(name)
	if err != nil {
		return err
	}
	tree, err := trial.Copy(".")
	if err != nil {
		return fmt.Errorf("copy the tree: %w", err)
	}
	defer func() { _ = os.RemoveAll(tree) }()
	if err := sound(tree, chosen); err != nil {
		return err
	}
	return prove(tree, chosen)
}

func choose(name string) ([]bug, error) {
	all, err := bugs(".")
	if err != nil || name == "" {
		return all, err
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(b bug) bool { return b.name != name })
	if len(chosen) == 0 {
		var names []string
		for i := range all {
			names = append(names, all[i].name)
		}
		return nil, fmt.Errorf("there is no bug %q, there are: %s", name, strings.Join(names, ", "))
	}
	return chosen, nil
}

// sound runs the tests of all bugs without any: a test that fails anyway proves
// nothing. The tests of a package are run together, patterns of subtests alone.
func sound(tree string, chosen []bug) error {
	began := time.Now()
	for _, s := range suites(chosen) {
		if r := s.Try(tree); !r.Green {
			return fmt.Errorf("%s fails without any bug:\n%s", s, r.Output)
		}
	}
	fmt.Printf("The tests of all %d pass without a bug (%.0f s).\n\n", len(chosen), time.Since(began).Seconds())
	return nil
}

func suites(chosen []bug) []trial.Suite {
	whole := map[string][]string{}
	var all []trial.Suite
	for i := range chosen {
		s := chosen[i].suite
		packages := strings.Join(s.Packages, " ")
		switch {
		case !strings.Contains(s.Run, "/"):
			whole[packages] = append(whole[packages], s.Run)
		case !slices.ContainsFunc(all, func(o trial.Suite) bool { return o.String() == s.String() }):
			all = append(all, s)
		}
	}
	for packages, runs := range whole {
		all = append(all, trial.Suite{Packages: strings.Fields(packages), Run: strings.Join(runs, "|")})
	}
	return all
}

func prove(tree string, chosen []bug) error {
	fmt.Println("| bug | what it is | seen at | found by | seconds |\n|---|---|---|---|---|")
	var survived []string
	for i := range chosen {
		b := &chosen[i]
		began := time.Now()
		found, err := b.try(tree)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		if found == "" {
			found = "**nothing: it survived**"
			survived = append(survived, b.name)
		} else {
			found = fmt.Sprintf("`%s` in %s", found, strings.Join(b.suite.Packages, " "))
		}
		fmt.Printf("| %s | %s | %s | %s | %.0f |\n", b.name, b.what, b.seen, found, time.Since(began).Seconds())
	}
	if len(survived) > 0 {
		return fmt.Errorf("the suite finds nothing wrong with: %s", strings.Join(survived, ", "))
	}
	return nil
}
