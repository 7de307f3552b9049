package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
)

// acceptance is where the tests of the settings are named, in the rows of a table of
// their own: a key in full, as in `worker.slots`, and its tests.
const acceptance = "docs/ACCEPTANCE.md"

var (
	settingRow = regexp.MustCompile("(?m)^\\| `((?:redis|tdf|server|worker|manager|task_defaults)\\.[a-z_]+)` \\|(.*)\\|$")
	namedTest  = regexp.MustCompile("`([a-z][a-zA-Z0-9_/-]*)\\.((?:Test|Example)\\w*)((?:/[^`]+)?)`")
)

// A test is one that is named in the document.
type test struct {
	// dir is its package, from the root of the tree, pattern what -test.run takes.
	dir, pattern string
}

// A setting is a key of the configuration, and the tests that are to notice when a
// program reads its default instead.
type setting struct {
	key   string
	tests []test
}

// settings are all keys of the configuration with their tests. A key without one is an
// error, and so is a row for any other name.
func settings(document string) ([]setting, error) {
	rows := map[string][]test{}
	for _, row := range settingRow.FindAllStringSubmatch(document, -1) {
		for _, name := range namedTest.FindAllStringSubmatch(row[2], -1) {
			rows[row[1]] = append(rows[row[1]], test{name[1], pattern(name[2] + name[3])})
		}
	}
	all := make([]setting, 0, len(config.Keys()))
	var problems []error
	for _, key := range config.Keys() {
		if len(rows[key]) == 0 {
			problems = append(problems, fmt.Errorf(
				"no test of %s is named in %s: write one that is red when a program reads the default, and a row `%s`",
				key, acceptance, key))
		}
		all = append(all, setting{key, rows[key]})
		delete(rows, key)
	}
	for key := range rows {
		problems = append(problems, fmt.Errorf("%s has a row for %s, which is no key", acceptance, key))
	}
	return all, errors.Join(problems...)
}

// pattern is the -test.run of a test and its subtest.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// trySettings prints what notices that a key's value is forgotten, a row for each key.
// It returns an error if nothing does, or if a test fails anyway.
func trySettings(out io.Writer, tree, only string) error {
	document, err := os.ReadFile(filepath.Join(tree, acceptance))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	all, err := settings(string(document))
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(s setting) bool { return !strings.Contains(s.key, only) })
	if len(all) == 0 {
		return nil
	}
	var dirs []string
	for _, s := range all {
		for _, t := range s.tests {
			dirs = append(dirs, t.dir)
		}
	}
	slices.Sort(dirs)
	began := time.Now()
	b, err := newBench(tree, slices.Compact(dirs))
	if b != nil {
		defer func() { _ = os.RemoveAll(b.dir) }()
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Built in %.0f s.\n\n| key | found by | seconds |\n|---|---|---|\n", time.Since(began).Seconds())
	survived := b.tryAll(out, all)
	fmt.Fprintf(out, "\n%d keys in %.0f s.\n", len(all), time.Since(began).Seconds())
	if len(survived) > 0 {
		slices.Sort(survived)
		return fmt.Errorf("no test notices that the value is forgotten, or one fails without that: %s", strings.Join(survived, ", "))
	}
	return nil
}

// atOnce is how many keys are tried beside one another: tests wait more than they work.
const atOnce = 4

func (b *bench) tryAll(out io.Writer, all []setting) (survived []string) {
	var (
		mu   sync.Mutex
		each sync.WaitGroup
		next = make(chan setting)
	)
	for range atOnce {
		each.Go(func() {
			for s := range next {
				began := time.Now()
				found, by := b.try(s)
				mu.Lock()
				fmt.Fprintf(out, "| `%s` | %s | %.1f |\n", s.key, by, time.Since(began).Seconds())
				if !found {
					survived = append(survived, s.key)
				}
				mu.Unlock()
			}
		})
	}
	for _, s := range all {
		next <- s
	}
	close(next)
	each.Wait()
	return survived
}

// try looks for the first of a key's tests that is red without its value, and green
// with it.
func (b *bench) try(s setting) (found bool, by string) {
	for _, t := range s.tests {
		r := b.run(s.key, t)
		if r.Green && strings.Contains(r.Output, "--- SKIP: ") && os.Getenv("TDF_NO_SKIPS") == "" {
			return true, fmt.Sprintf("nothing, as `%s` in %s is skipped here", t.pattern, t.dir)
		}
		if r.Green {
			continue
		}
		if sound := b.run(nothing, t); !sound.Green {
			return false, fmt.Sprintf("**`%s` in %s fails anyway**:\n%s", sound.Found, t.dir, sound.Output)
		}
		return true, fmt.Sprintf("`%s` in %s", r.Found, t.dir)
	}
	return false, "**nothing: it survived**"
}
