// Command testreport reads the events of go test -json, prints each skipped test
// with its reason and each that passed only when it was run again, and ends with a line "N passed, N failed, N skipped". It exits
// with 1 if a test failed, if none ran, or if one was skipped that the list of
// allowed skips does not name.
//
//	testreport -allow scripts/allowed-skips.txt bin/test-events.json
package main

import (
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
	if len(args) != 1 {
		return false, fmt.Errorf("want one file of test events, got %d arguments", len(args))
	}
	allow, err := readAllowed(allowFile)
	if err != nil {
		return false, err
	}
	events, err := os.Open(args[0])
	if err != nil {
		return false, fmt.Errorf("test events: %w", err)
	}
	defer func() { _ = events.Close() }()
	c, err := count(events)
	if err != nil {
		return false, err
	}
	return c.report(w, allow), nil
}
