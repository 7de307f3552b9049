package main

import (
	"bytes"
	"testing"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/bench/frametest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A tiny run does all that a large one does; its figures say nothing.
func TestLongWholeProgram(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	args := []string{
		"-conf", "../../configs/redis.conf", "-tasks", "200", "-fill", "50", "-few", "100", "-many", "200", "-slice", "20", "-rounds", "2",
		"-idlers", "2", "-settle", "10ms", "-watch", "200ms",
	}
	if err := run(t.Context(), args, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	frametest.Matches(t, out.String(),
		`\| shipped redis\.conf \| \d+ \|`, `\| defaults of Redis \| \d+ \|`, `\| hash as it is \| \d+ \|`, `\| index as a list \| \d+ \|`,
		`\| 100 \| \d+ \| \d+-\d+ \| 1\.00 \|`, `\| 200 \| \d+ \| \d+-\d+ \| \d+\.\d\d \|`,
		`\| 200 \| -?\d+\.\d\d % \|`, `\| commands a second \| -?\d+\.\d\d \|`,
	)
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	frametest.Refuses(t, run, map[string]string{
		"-tasks=0": "-tasks=0: must be at least 1", "-few=7 -many=6": "-few=7: more than -many=6", "-watch=0s": "-watch=0s",
		"-only=memory,disk": `no part "disk"`, "-limit=1ns -only=forms": "-limit=1ns is over",
	})
}
