package main

import (
	"bytes"
	"testing"
)

// A tiny run does all that a large one does; its figures say nothing.
func TestLongSize(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	args := []string{
		"memory", "scale", "quiet", "-conf", shippedConf, "-tasks", "50", "-fill", "50", "-few", "1000", "-many", "2000", "-rounds", "2",
		"-settle", "10ms", "-watch", "200ms",
	}
	if err := run(t.Context(), args, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	matches(t, out.String(),
		`\| shipped redis\.conf \| \d+ \|`, `\| defaults of Redis \| \d+ \|`,
		`\| behind 1000 that wait \| \d+ \| \d+-\d+ \| \d+ \| \d+-\d+ \| 1\.00 \|`, `\| behind 2000 that wait \| \d+ \| \d+-\d+ \| \d+ \| \d+-\d+ \| \d+\.\d\d \|`,
		`behind 2000 that wait in behind 1000 that wait, µs of Redis a task: \d+\.\d\d`,
		`\| 2000 \| -?\d+\.\d\d % \|`,
	)
}
