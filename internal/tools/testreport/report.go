package main

import (
	"fmt"
	"io"
)

// report writes what was skipped and broken and the closing line, and tells
// whether all is well.
func (c *counts) report(w io.Writer, allow []string) bool {
	ok := c.failed == 0
	for _, s := range c.skips {
		verdict := "skipped"
		if !s.allowed(allow) {
			verdict, ok = "skipped, not allowed", false
		}
		fmt.Fprintf(w, "%s: %s: %s\n", verdict, s.testName, s.reason)
	}
	for _, pkg := range c.broken {
		fmt.Fprintf(w, "package failed outside its tests: %s\n", pkg)
	}
	if c.passed+c.failed == 0 {
		fmt.Fprintln(w, "no test ran")
		ok = false
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", c.passed, c.failed, len(c.skips))
	return ok
}
