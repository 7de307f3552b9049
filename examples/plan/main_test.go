package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/crewtest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// The stress plan comes to its end on programs, with every argument in its place.
func TestStressPlan(t *testing.T) {
	t.Parallel()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	crew := crewtest.Crew{Dir: dir, Place: crewtest.NewPlace(t)}
	for i := range 3 {
		crew.Workers = append(crew.Workers, fmt.Sprintf("worker-%c", 'A'+i))
	}
	crewtest.Start(t, crew)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var out strings.Builder
	err = run(ctx, []string{"--seed", "7", "40", "5", crew.Place.Config(t, "manager.cfg")}, &out)
	text := out.String()
	if err != nil || !strings.HasPrefix(text, "plan 1: 40 tasks, each needs 5 others (seed 7)\ncompleted after ") ||
		!strings.HasSuffix(text, ": map[succeeded:40]\n40 numbers, each in its place\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "1 2", "0 1 f", "1 0 f", "x 1 f", "1 1001 f", "--seed x 1 1 f", "--seed -1 1 1 f"} {
		if err := run(t.Context(), strings.Fields(args), nil); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
