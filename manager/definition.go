package manager

import (
	"encoding/json"
	"strconv"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// definitionFields are the hash fields that define a task, and those that say how
// it ended.
var definitionFields = []string{
	"state", "outcome", "program", "source", "input", "argv", "start_after", "end_before", "timeout",
	"max_fails", "max_timeouts", "max_losses", "max_faults", "fail_on", "charge",
	"queue", "env", "labels", "resources", "priority",
	"retry_delay", "retry_backoff", "retry_max_delay", "retry_jitter", "retry_exit_codes", "fatal_exit_codes", "args", stepField,
}

// definitionOf is the definition of a task as it can be opened again. Its key,
// which belongs to that task, and what held it are left out.
func definitionOf(id int64, f map[string]string) (store.Spec, error) {
	s := store.Spec{
		Program: f["program"], Source: f["source"], Input: f["input"],
		StartAfter: f["start_after"], EndBefore: f["end_before"], Timeout: f["timeout"],
		MaxFails: f["max_fails"], MaxTimeouts: f["max_timeouts"], MaxLosses: f["max_losses"], MaxFaults: f["max_faults"],
		FailOn: f["fail_on"], Charge: f["charge"],
		Bucket:     store.Bucket{Queue: f["queue"], Env: f["env"], Labels: f["labels"], Resources: f["resources"]},
		RetryDelay: f["retry_delay"], RetryBackoff: f["retry_backoff"],
		RetryMaxDelay: f["retry_max_delay"], RetryJitter: f["retry_jitter"],
		RetryExitCodes: f["retry_exit_codes"], FatalExitCodes: f["fatal_exit_codes"], ArgsAs: f["args"], Step: f[stepField],
	}
	if s.Bucket.Queue == DefaultQueue {
		s.Bucket.Queue = ""
	}
	if text := f["priority"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return s, &store.DamageError{ID: id, Reason: "field priority: " + strconv.Quote(text) + " is not a whole number"}
		}
		s.Bucket.Priority = n
	}
	if text := f["argv"]; text != "" {
		if err := json.Unmarshal([]byte(text), &s.Argv); err != nil || s.Argv == nil {
			return s, &store.DamageError{ID: id, Reason: "field argv is not a list of texts"}
		}
	}
	return s, nil
}

// endOf is how a task ended, by its fields; the state it is in if it has not.
func endOf(f map[string]string) statemachine.State {
	t := statemachine.Task{State: statemachine.State(f["state"]), Outcome: statemachine.State(f["outcome"])}
	return t.End()
}
