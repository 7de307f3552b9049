package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/crewtest"
)

// processEnv makes the test binary the example.
const processEnv = "TEST_SUM"

// process is the example in a process of its own. It goes on with what there is.
func process(ctx context.Context, config string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], "--continue", "10", "100", "3", config)
	cmd.Env = append(os.Environ(), processEnv+"=1", "TDF_MANAGER_HANDLING_LEASE=1", "TDF_MANAGER_ROUND_DURATION=0.1")
	return cmd
}

// runUntil runs the example, and kills it when it has written that many lines;
// it reports whether it was, and returns what it wrote.
func runUntil(ctx context.Context, config string, lines int) (out []string, killed bool, err error) {
	cmd := process(ctx, config)
	both, err := cmd.StdoutPipe()
	if err != nil {
		return nil, false, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return nil, false, err
	}
	scanner := bufio.NewScanner(both)
	for scanner.Scan() {
		if out = append(out, scanner.Text()); len(out) == lines {
			killed = cmd.Process.Kill() == nil
		}
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == -1 && killed {
		return out, true, nil
	}
	return out, false, err
}

// suffer starts the example again each time it was killed, at a random line, and
// in the end lets it finish.
func suffer(ctx context.Context, config string, random *rand.Rand, kills int) error {
	for range kills {
		if out, killed, err := runUntil(ctx, config, 1+random.IntN(90)); err != nil {
			return fmt.Errorf("%w:\n%s", err, strings.Join(out, "\n"))
		} else if !killed {
			break // it was done before
		}
	}
	out, _, err := runUntil(ctx, config, 0)
	if err == nil && !slices.Contains(out, "FINAL RESULT: 5005") {
		err = errors.New("no right sum")
	}
	if err != nil {
		return fmt.Errorf("%w:\n%s", err, strings.Join(out, "\n"))
	}
	return nil
}

// RA12: the manager is killed at random points, one alone and two at once. The
// sum is always right, and no task is there twice.
func TestLongKilledAtRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		managers := 1 + int(seed)%2
		t.Run(fmt.Sprintf("seed %d, %d managers", seed, managers), func(t *testing.T) {
			t.Parallel()
			place := crewtest.NewPlace(t)
			crewtest.Start(t, crewtest.Crew{Dir: here(t), Place: place, Workers: []string{"A", "B"}})
			config := place.Config(t, "manager.cfg")
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			errs := make([]error, managers)
			var all sync.WaitGroup
			for i := range managers {
				all.Go(func() { errs[i] = suffer(ctx, config, rand.New(rand.NewPCG(seed, uint64(i))), 4) })
			}
			all.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
			if c := counts(t, place); c.Unarchived() != 0 || c.Total() != 31+11+4+2+1 {
				t.Errorf("tasks by state: %v, want the 49 of the tree, archived", c)
			}
		})
	}
}

// TestContinue: what is another's is left alone, what is done is not done again.
func TestContinue(t *testing.T) {
	t.Parallel()
	place := crewtest.NewPlace(t)
	crewtest.Start(t, crewtest.Crew{Dir: here(t), Place: place, Workers: []string{"w"}})
	sum := func(args ...string) (string, error) {
		var out strings.Builder
		err := run(t.Context(), append(args, place.Config(t, "manager.cfg")), &out)
		return out.String(), err
	}
	for range 2 {
		if out, err := sum("--continue", "1", "9", "3"); err != nil || !strings.Contains(out, "FINAL RESULT: 45\n") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if c := counts(t, place); c.Total() != 4 {
		t.Errorf("tasks by state: %v, want 4", c)
	}
	if out, err := sum("--continue", "1", "9", "4"); err == nil || !strings.Contains(err.Error(), "holds something else") {
		t.Errorf("went on with another sum: %v\n%s", err, out)
	}
}
