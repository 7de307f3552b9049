package critical

import (
	"testing"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// The rule of this package, which knows phases only, is that of plans. What holds a plan is taken not to be retried.
func TestVerdict(t *testing.T) {
	t.Parallel()
	phases := map[task.Verdict]Phase{
		task.VerdictMet: Waiting, task.VerdictSkip: Skipped, task.VerdictNever: Failed, task.VerdictWait: Failed,
	}
	for _, on := range []task.When{task.NeedsSuccess, task.NeedsAny, task.NeedsFailure} {
		for end, state := range map[Phase]statemachine.State{
			Succeeded: statemachine.Succeeded, Failed: statemachine.Failed, Skipped: statemachine.Cancelled,
		} {
			for _, f := range []task.OnFailure{task.FailureCancels, task.FailureHolds, task.FailureContinues} {
				want := phases[on.Verdict(state, end == Skipped, f)]
				if got := verdict(on, end, f == task.FailureContinues); got != want {
					t.Errorf("%s of phase %d in a plan with %s: %d, want %d", on, end, f, got, want)
				}
			}
		}
	}
}
