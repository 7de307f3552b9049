package manager

import (
	"context"
	"slices"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// Result is what a task has brought: the argument of those that need it.
type Result struct {
	// Task is its id: that of the last retry that has ended, or succeeded if one has.
	Task int64
	// End is how it ended; empty if it has not.
	End statemachine.State
	// Text is what the program wrote as result= to $TDF_CONTROL, or else its output
	// without the newline at the end.
	Text string
	// Cut says that the output was cut, so that Text is not all of it and no argument.
	Cut bool
}

// resultPage is how many results are read in one call.
const resultPage = 100

// Results reads the results of tasks, in the order of the ids.
func (m *Manager) Results(ctx context.Context, ids ...int64) ([]Result, error) {
	results := make([]Result, 0, len(ids))
	for page := range slices.Chunk(ids, resultPage) {
		found, err := patiently(ctx, m, func() ([]store.Result, error) { return m.store.Results(ctx, page) })
		if err != nil {
			return results, err
		}
		for i := range found {
			results = append(results, Result(found[i]))
		}
	}
	return results, nil
}
