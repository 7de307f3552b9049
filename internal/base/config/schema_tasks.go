package config

import (
	"slices"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

func taskDefaultsSection(d *TaskDefaults) section {
	return section{
		name: "task_defaults", doc: "Values of a new task that its opener did not give. Read by tdf-manager and by programs that use the package manager.",
		keys: slices.Concat([]key{
			{"start_after", "0", timestamp(&d.StartAfter, false), "Earliest start, in unix seconds."},
			{"end_before", "inf", timestamp(&d.EndBefore, true), "Latest end of the execution, in unix seconds."},
			{"timeout", "inf", span(&d.Timeout), "Longest time a round may run, its fetch included."},
			{"max_fails", "0", limit(&d.MaxFails), "How often a task may fail and be opened again."},
			{"max_timeouts", "0", limit(&d.MaxTimeouts), "How often a task may time out and be opened again."},
			{"max_losses", statemachine.DefaultMaxLosses.Text(), limit(&d.MaxLosses), "How often a task may lose its worker and be opened again."},
			{"max_faults", statemachine.DefaultMaxFaults.Text(), limit(&d.MaxFaults), "How often a task may fail without being to blame (see `charge`) and be opened again."},
			{"add_random_start_offset", "False", boolean(&d.AddRandomStartOffset), "Add a random part of a second to `start_after`, to mix tasks with the same start."},
			{"fail_on", FailOnAny, defaultWord(&d.FailOn, FailOnWords()...), "What makes a round a failure: `stderr` any output there, `exit` only the exit status or a signal, `any` (or empty) either of them."},
			{"charge", ChargeAll, defaultWord(&d.Charge, ChargeWords()...), "Which failures count against `max_fails`: `all` of them (or empty), or with `program` only those of the program and of its limits; where it could not be fetched or the node could not run it, `max_faults` counts."},
		}, retryKeys(d), routeKeys(d)),
	}
}

// retryKeys are about when a task that failed, timed out or met a fault is run again.
func retryKeys(d *TaskDefaults) []key {
	return []key{
		{"retry_delay", "0", ofTask(&d.RetryDelay, "retry_delay", "seconds", "from 0 to 31536000"), "How long a task rests before it is run again after a failure, a timeout or a fault."},
		{"retry_backoff", "1", ofTask(&d.RetryBackoff, "retry_backoff", "number", "from 1 to 1000"), "By what factor each of these rests is longer than the one before."},
		{"retry_max_delay", "inf", ofTask(&d.RetryMaxDelay, "retry_max_delay", "seconds", "above 0, or inf"), "Where the rests stop growing."},
		{"retry_jitter", "0", ofTask(&d.RetryJitter, "retry_jitter", "number", "from 0 to 1"), "Which part of a rest is left to chance, so that tasks that failed together do not come back together."},
		{"retry_exit_codes", "", listOfTask(&d.RetryExitCodes, "retry_exit_codes", "of numbers from 0 to 255"), "If given, only failures with these exit codes are run again, for example `75,111`. A failure without an exit code is not affected."},
		{"fatal_exit_codes", "", listOfTask(&d.FatalExitCodes, "fatal_exit_codes", "of numbers from 0 to 255"), "Failures with these exit codes are never run again, whatever `max_fails` and `retry_exit_codes` say."},
	}
}

// routeKeys are about where a task may run, and when.
func routeKeys(d *TaskDefaults) []key {
	return []key{
		{"queue", route.DefaultQueue, text(&d.Queue, ruled(route.CheckQueueName)), "Queue of the task. It must exist; `default` always does."},
		{"env", "", ofTask(&d.Env, "env", "text", ""), "Environment that the task demands of a worker; empty for none, so that it runs anywhere."},
		{"labels", "", listOfTask(&d.Labels, "labels", "of label=value"), "What the task demands that a worker offers, all of it."},
		{"resources", "", listOfTask(&d.Resources, "resources", "of name=number"), "What the task takes of its node while it runs, for example `gpu=1,mem=2048`."},
		{"priority", "0", integer(&d.Priority, route.MinPriority, route.MaxPriority), "Tasks of higher priority come first in their queue; waiting raises it (see the attribute `aging` of queues)."},
	}
}
