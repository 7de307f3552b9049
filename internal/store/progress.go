package store

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// Progress is how far a program says it has come.
type Progress struct {
	// Part is from 0 to 1, negative if not given.
	Part float64
	Text string
}

// String is how the progress stands in the hash: "0.4 halfway".
func (far Progress) String() string {
	text := strings.Join(strings.Fields(far.Text), " ")
	if len(text) > maxProgress {
		text = strings.ToValidUTF8(text[:maxProgress], "")
	}
	if far.Part < 0 {
		return text
	}
	return strings.TrimSpace(strconv.FormatFloat(far.Part, 'f', -1, 64) + " " + text)
}

// maxProgress is how many bytes of a progress text are kept.
const maxProgress = 256

// Progress records how far the program of a running task has come. It returns
// an error matching statemachine.ErrStale if the round is over.
func (s *Store) Progress(ctx context.Context, t *statemachine.Task, far Progress) error {
	if far.Part > 1 || math.IsNaN(far.Part) {
		return &statemachine.FieldError{
			Field: "progress", Value: strconv.FormatFloat(far.Part, 'g', -1, 64), Want: "a number from 0 to 1, or below 0 for none",
		}
	}
	return s.note(ctx, t, "", "progress", far.String())
}
