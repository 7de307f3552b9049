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
	t := trial.Table{Columns: []string{"bug", "what it is", "seen at"}, Sound: suites(chosen)}
	for i := range chosen {
		t.Faults = append(t.Faults, chosen[i].fault())
	}
	return t.Print(os.Stdout, ".")
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

// suites are the tests of all bugs. Those of a package are run together, patterns
// of subtests alone.
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
