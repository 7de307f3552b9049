package answer

import (
	"slices"
	"testing"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// What a job has noted of its failures is not looked for among its tasks: here there is nobody to ask.
func TestJobFailuresAreNoted(t *testing.T) {
	t.Parallel()
	p := &task.Plan{ID: 7, Total: 1_000_000, Left: 999_998, Failures: []int64{3, 9}, Ended: map[statemachine.State]int64{statemachine.Failed: 2}}
	if ids, err := jobFailures(t.Context(), nil, p); err != nil || !slices.Equal(ids, []int64{3, 9}) {
		t.Errorf("%v, %v", ids, err)
	}
}
