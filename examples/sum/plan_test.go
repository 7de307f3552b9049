package main

import (
	"context"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/crewtest"
)

// A plan adds the numbers up as the loop does, with two results in each task above the
// first ones.
func TestPlan(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][2]string{
		"10 100 3": {"plan 1 has 61 tasks, of which 30 wait for others", "FINAL RESULT: 5005"},
		"7 7 3":    {"plan 1 has 1 tasks, of which 0 wait for others", "FINAL RESULT: 7"},
		"-9 10 9":  {"plan 1 has 5 tasks, of which 2 wait for others", "FINAL RESULT: 10"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			place := crewtest.NewPlace(t)
			out, err := sum(t, place, 2, append([]string{"--plan"}, strings.Fields(args)...)...)
			lines := strings.Split(out, "\n")
			if err != nil || len(lines) != 5 || lines[1] != want[0] || lines[2] != want[1] {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A plan goes on without the program that made it, and the same one begun again finds
// its result.
func TestPlanContinue(t *testing.T) {
	t.Parallel()
	place := crewtest.NewPlace(t)
	crewtest.Start(t, crewtest.Crew{Dir: here(t), Place: place, Workers: []string{"w"}})
	config := place.Config(t, "manager.cfg")
	ctx, cancel := context.WithCancel(t.Context())
	if err := run(ctx, []string{"--plan", "1", "20", "2", config}, stopAt{cancel, "plan 1 has"}); err == nil {
		t.Fatal("a run that was stopped ended without an error")
	}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		var out strings.Builder
		err := run(ctx, []string{"--continue", "--plan", "1", "20", "2", config}, &out)
		if text := out.String(); err != nil || !strings.Contains(text, "plan 1 has 19 tasks") || !strings.Contains(text, "FINAL RESULT: 210\n") {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	if c := counts(t, place); c.Total() != 19 {
		t.Errorf("tasks by state: %v, want 19", c)
	}
}
