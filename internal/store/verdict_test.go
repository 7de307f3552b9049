package store_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// The rule of Go is that of the scripts.
func TestVerdict(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	plans, err := os.ReadFile("conn/lib/plans.lua")
	if err != nil {
		t.Fatal(err)
	}
	script := `local OUTCOMES = {}
for i = 5, #ARGV do OUTCOMES[ARGV[i]] = true end
` + string(plans) + `
return verdict(ARGV[1], ending(ARGV[2]), ARGV[3] == 'true', ARGV[4])`
	var outcomes []any
	for _, outcome := range statemachine.Outcomes() {
		outcomes = append(outcomes, string(outcome))
	}
	seen := map[task.Verdict]bool{}
	for _, on := range []task.When{"", task.NeedsSuccess, task.NeedsAny, task.NeedsFailure} {
		for _, end := range append(statemachine.Outcomes(), statemachine.None) {
			for _, skipped := range []bool{false, true} {
				for _, f := range []task.OnFailure{task.FailureCancels, task.FailureHolds, task.FailureContinues} {
					got := on.Verdict(end, skipped, f)
					seen[got] = true
					want, err := sp.Raw.Eval(t.Context(), script, nil,
						append([]any{string(on), string(end), fmt.Sprint(skipped), string(f)}, outcomes...)...).Text()
					if err != nil || string(got) != want {
						t.Errorf("%q of a task that is %q (skipped %v) in a plan with %s: %s, want %s, error %v", on, end, skipped, f, got, want, err)
					}
				}
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("only %v", seen)
	}
}
