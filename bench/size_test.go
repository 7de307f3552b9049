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
		"memory", "forms", "scale", "quiet", "idle", "-conf", shippedConf, "-tasks", "50", "-fill", "50", "-few", "100", "-many", "200", "-rounds", "2",
		"-workers", "2", "-settle", "10ms", "-watch", "200ms",
	}
	if err := run(t.Context(), args, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	matches(t, out.String(),
		`\| shipped redis\.conf \| \d+ \|`, `\| defaults of Redis \| \d+ \|`, `\| hash as it is \| \d+ \|`, `\| index as a list \| \d+ \|`,
		`\| behind 100 that wait \| \d+ \| \d+-\d+ \| \d+ \| \d+-\d+ \| 1\.00 \|`, `\| behind 200 that wait \| \d+ \| \d+-\d+ \| \d+ \| \d+-\d+ \| \d+\.\d\d \|`,
		`behind 200 that wait in behind 100 that wait, µs of Redis a task: \d+\.\d\d`,
		`\| 200 \| -?\d+\.\d\d % \|`, `\| commands a second \| -?\d+\.\d\d \|`,
	)
}
