// Command testreport reads the events of one or more runs of go test -json, prints
// each skipped test with its reason, and ends with a line "N passed, N failed,
// N skipped". It exits with 1 if a test failed, if none ran, or if one was skipped
// that the list of allowed skips does not name.
//
//	testreport -allow scripts/allowed-skips.txt bin/test-events.json
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	allowFile := flag.String("allow", "", "`file` with the tests that may be skipped")
	flag.Parse()
	ok, err := run(os.Stdout, *allowFile, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run writes the report and tells whether the tests may pass.
func run(w io.Writer, allowFile string, args []string) (bool, error) {
	if len(args) == 0 {
		return false, errors.New("want the files of test events as arguments, got none")
	}
	allow, err := readAllowed(allowFile)
	if err != nil {
		return false, err
	}
	c := newCounts()
	for _, file := range args {
		if err := c.addFile(file); err != nil {
			return false, err
		}
	}
	return c.report(w, allow), nil
}

func (c *counts) addFile(name string) error {
	events, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("test events: %w", err)
	}
	defer func() { _ = events.Close() }()
	return c.add(events)
}
