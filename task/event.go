package task

import (
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Repair is the event of a task whose records disagreed and were put right. The state
// machine does not know it.
const Repair statemachine.Event = "repair"

// Event is one step of one task: it was created, claimed, executed, settled, archived.
type Event struct {
	// Seq is the number of the step in the namespace. Numbers rise, with gaps: some changes
	// are counted and are no steps.
	Seq int64 `json:"seq"`
	// At is when it happened on the clock of Redis; zero if that cannot be read.
	At time.Time `json:"at,omitzero"`
	// ID is the task's.
	ID int64 `json:"id"`
	// Round is the round the task was in before the step; -1 in a repair of a task
	// whose round could not be read. A step that opens the task again leaves it in
	// the next one.
	Round int `json:"round"`
	// From and To are the states before and after; [statemachine.None] for a task that was
	// not there, or is set aside.
	From statemachine.State `json:"from"`
	To   statemachine.State `json:"to"`
	// Event is what happened; Actor, what kind of program brought it about; By, its name.
	Event statemachine.Event `json:"event"`
	Actor statemachine.Actor `json:"actor"`
	By    string             `json:"by"`
	// Err says what cannot be read. Then the others but Seq mean nothing.
	Err error `json:"-"`
}
