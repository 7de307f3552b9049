package why_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/testkit/whytest"
)

// TestReasonsAgainstTheTwin: what a claim would take has no reason that blocks,
// all else has one, and carrying out the proposals makes a claim take it.
func TestReasonsAgainstTheTwin(t *testing.T) {
	t.Parallel()
	var all whytest.Tally
	rapid.Check(t, func(t *rapid.T) {
		n, err := whytest.Check(whytest.Draw(t), whytest.Twin{})
		if err != nil {
			t.Fatal(err)
		}
		all.Claimable, all.Blocked = all.Claimable+n.Claimable, all.Blocked+n.Blocked
	})
	t.Logf("%d claimable tasks, %d others", all.Claimable, all.Blocked)
	if all.Claimable == 0 || all.Blocked == 0 {
		t.Errorf("%+v: want both", all)
	}
}
