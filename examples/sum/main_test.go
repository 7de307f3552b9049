package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/crewtest"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/manager"
)

// TestMain also makes the test binary the example itself; see process.
func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		main()
		return
	}
	redistest.Main(m)
}

const limit = 3 * time.Minute

// sum runs the example on a crew of its own and returns what it printed.
func sum(t *testing.T, place crewtest.Place, workers int, args ...string) (string, error) {
	t.Helper()
	crew := crewtest.Crew{Dir: here(t), Place: place}
	for i := range workers {
		crew.Workers = append(crew.Workers, fmt.Sprintf("worker-%c", 'A'+i))
	}
	crewtest.Start(t, crew)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var out strings.Builder
	err := run(ctx, append(args, place.Config(t, "manager.cfg")), &out)
	return out.String(), err
}

func here(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

// counts asks the namespace how many tasks are in which state.
func counts(t *testing.T, place crewtest.Place) manager.Counts {
	t.Helper()
	c, err := open(t, place).Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSum is case A50.
func TestSum(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 4} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			t.Parallel()
			place := crewtest.NewPlace(t)
			out, err := sum(t, place, workers, "10", "100", "3")
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			checkLines(t, out)
			if c := counts(t, place); c.Unarchived() != 0 || c.Total() < 31+2 {
				t.Errorf("tasks by state: %v, want all archived, and more than the first 31", c)
			}
		})
	}
}

func checkLines(t *testing.T, out string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	n := len(lines)
	if n < 35 || lines[0] != "computing sum of [10,100] with bucket size p=3" ||
		lines[1] != "creating task for numbers: ['10', '11', '12']" || lines[31] != "creating task for numbers: ['100']" ||
		!strings.HasPrefix(lines[32], "ending round 0 (") || !strings.HasSuffix(lines[32], " tasks left)") ||
		!slices.Equal(lines[n-2:], []string{"FINAL RESULT: 5005", "result should be: 5005 = (100+10) / 2 * (100-10+1)"}) {
		t.Errorf("output is not that of the document:\n%s", out)
	}
}

func TestOtherSums(t *testing.T) {
	t.Parallel()
	for args, result := range map[string]string{
		"7 7 3":   "FINAL RESULT: 7\n",
		"1 2 2":   "FINAL RESULT: 3\n",
		"-9 10 4": "FINAL RESULT: 10\n",
		"1 20 99": "FINAL RESULT: 210\n",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			out, err := sum(t, crewtest.NewPlace(t), 2, strings.Fields(args)...)
			if err != nil || !strings.Contains(out, result) {
				t.Errorf("%v, no %q in:\n%s", err, result, out)
			}
		})
	}
}

// TestFlushesItsOwnNamespaceOnly also is case A45 for the example.
func TestFlushesItsOwnNamespaceOnly(t *testing.T) {
	t.Parallel()
	place, srv := crewtest.NewPlace(t), redistest.Shared(t)
	own, other := place.Namespace+":leftover", place.Namespace+"2:task_id"
	srv.Do(t, "SET", own, "x")
	srv.Do(t, "SET", other, "17")
	if out, err := sum(t, place, 1, "1", "4", "2"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if srv.Do(t, "GET", own) != nil || srv.Do(t, "GET", other) != "17" {
		t.Errorf("%s: %v, %s: %v", own, srv.Do(t, "GET", own), other, srv.Do(t, "GET", other))
	}
}

// TestStartedAgain leaves a run half done and begins a new one on its namespace.
func TestStartedAgain(t *testing.T) {
	t.Parallel()
	place := crewtest.NewPlace(t)
	ctx, cancel := context.WithCancel(t.Context())
	begun := stopAt{cancel, "ending round"}
	if err := run(ctx, []string{"1", "50", "2", place.Config(t, "manager.cfg")}, begun); err == nil {
		t.Fatal("a run that was stopped ended without an error")
	}
	if c := counts(t, place); c.Left() != 25 {
		t.Fatalf("tasks left behind: %v, want 25", c)
	}
	out, err := sum(t, place, 2, "10", "100", "3")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkLines(t, out)
}

// stopAt cancels when a line begins so.
type stopAt struct {
	cancel func()
	line   string
}

func (s stopAt) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), s.line) {
		s.cancel()
	}
	return len(p), nil
}

func TestFailedTaskEndsTheSum(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, say string }{
		"error":     {"#!/bin/sh\necho 'no more numbers' >&2\n", "has failed: no more numbers"},
		"no number": {"#!/bin/sh\necho x\n", `printed "x"`},
		"wrong":     {"#!/bin/sh\necho 1\n", "is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkFailure(t, c.script, c.say, "1", "9", "3")
		})
		t.Run(name+" in a plan", func(t *testing.T) {
			t.Parallel()
			checkFailure(t, c.script, c.say, "--plan", "1", "9", "3")
		})
	}
}

// checkFailure runs the example with another program.
func checkFailure(t *testing.T, script, say string, args ...string) {
	t.Helper()
	place, dir := crewtest.NewPlace(t), t.TempDir()
	writeFile(t, filepath.Join(dir, "run.sh"), script)
	for _, file := range []string{"server.cfg", "worker.cfg"} {
		writeFile(t, filepath.Join(dir, file), readFile(t, file))
	}
	crewtest.Start(t, crewtest.Crew{Dir: dir, Place: place, Workers: []string{"w"}})
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := run(ctx, append(args, place.Config(t, "manager.cfg")), io.Discard)
	if err == nil || !strings.Contains(err.Error(), say) {
		t.Errorf("%v, want an error that says %q", err, say)
	}
}

func writeFile(tb testing.TB, name, text string) {
	tb.Helper()
	hosttest.WriteProgram(tb, name, text, 0o755)
}

func readFile(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	for args, say := range map[string]string{
		"1 2 3":                    "expecting 4 arguments (3 given)",
		"x 2 3 manager.cfg":        "M=x",
		"5 4 3 manager.cfg":        "N=4: write a whole number from 5",
		"1 2 1 manager.cfg":        "P=1: write a whole number from 2",
		"1 2000000000 3 m.cfg":     "N=2000000000",
		"--continue 1 2 3":         "expecting 4 arguments (3 given)",
		"--plan --continue 1 2 3":  "expecting 4 arguments (3 given)",
		"--plans 1 2 3 m.cfg":      "--plans is not known",
		"1 99999999999999999999 3": "expecting 4",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard)
		if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want a usage error that says %q", args, err, say)
		}
	}
	if err := run(t.Context(), []string{"1", "2", "3", "nowhere.cfg"}, io.Discard); err == nil || errors.Is(err, errUsage) {
		t.Errorf("a missing configuration: %v", err)
	}
}
