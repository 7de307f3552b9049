package critical

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// The rule of this package, which knows phases only, is that of plans. What holds a plan is taken not to be retried.
func TestVerdict(t *testing.T) {
	t.Parallel()
	phases := map[store.NeedVerdict]Phase{
		store.VerdictMet: Waiting, store.VerdictSkip: Skipped, store.VerdictNever: Failed, store.VerdictWait: Failed,
	}
	for on, as := range map[When]store.When{OnSuccess: store.NeedsSuccess, OnAny: store.NeedsAny, OnFailure: store.NeedsFailure} {
		for end, state := range map[Phase]statemachine.State{
			Succeeded: statemachine.Succeeded, Failed: statemachine.Failed, Skipped: statemachine.Cancelled,
		} {
			for _, f := range []store.OnFailure{store.FailureCancels, store.FailureHolds, store.FailureContinues} {
				want := phases[as.Verdict(state, end == Skipped, f)]
				if got := verdict(on, end, f == store.FailureContinues); got != want {
					t.Errorf("%s of phase %d in a plan with %s: %d, want %d", as, end, f, got, want)
				}
			}
		}
	}
}
