package manager

import "github.com/tdf-go/tdf/statemachine"

// disbatchStatus are Disbatch's numbers for states.
var disbatchStatus = map[statemachine.State]int{
	statemachine.Orphaned: -6, statemachine.Cancelled: -5, statemachine.Blocked: -4, statemachine.Terminated: -3,
	statemachine.Open: -2, statemachine.Running: 0, statemachine.Executed: 0,
	statemachine.Succeeded: 1, statemachine.Failed: 2, statemachine.TimedOut: 3, statemachine.Expired: 4,
}

// disbatchUnknown is Disbatch's status for what is no status.
const disbatchUnknown = 2

// DisbatchStatus is the task's status as Disbatch numbers it: -6 orphaned, -5
// cancelled, -4 blocked, -3 terminated, -2 open, 0 running or executed, 1
// succeeded, 2 failed, 3 timed out, 4 expired; of an archived task, that of its
// outcome. A damaged record is 2, as in Disbatch.
func DisbatchStatus(state, outcome statemachine.State) int {
	status, known := disbatchStatus[(&statemachine.Task{State: state, Outcome: outcome}).End()]
	if !known {
		return disbatchUnknown
	}
	return status
}

// DisbatchStatus is the function of that name for the task.
func (t *Task) DisbatchStatus() int { return DisbatchStatus(t.State, t.Outcome) }

// DisbatchStatus is the function of that name for the task.
func (s *Summary) DisbatchStatus() int { return DisbatchStatus(s.State, s.Outcome) }
