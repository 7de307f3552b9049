package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// fieldTable are the rows about a task; those that say nothing are left out where
// most tasks have none.
type fieldTable struct{ *cli.Table }

func (table fieldTable) some(name, value string) {
	if value != "" {
		table.Row(name, value)
	}
}

func showFields(w io.Writer, t *manager.Task) error {
	state := string(t.State)
	if end := t.EndState(); end != t.State && end != statemachine.None {
		state += " (" + string(end) + ")"
	}
	table := fieldTable{cli.NewTable(w)}
	table.Row("task", t.ID)
	table.Row("state", state)
	if !t.Created.IsZero() {
		table.Row("created", when(t.Created))
	}
	table.steps(t)
	table.plan(t)
	table.Row("program", t.Program)
	table.Row("source", clean.Source(t.Source))
	table.Row("input", inputText(t.Input, t.Argv))
	table.place(t)
	table.Row("start_after", moment(t.StartAfter))
	if t.NotBefore > 0 {
		table.Row("not_before", moment(t.NotBefore)+" (rests after a failure)")
	}
	table.Row("end_before", moment(t.EndBefore))
	table.Row("timeout", span(t.Timeout))
	table.counters(t)
	table.Row("fail_on", cmp.Or(t.FailOn, manager.FailOnAny))
	table.policy(t)
	return table.Flush()
}

// steps are what operators did with the task, and the tasks it is linked with.
func (table fieldTable) steps(t *manager.Task) {
	if t.State == statemachine.Blocked {
		table.Row("held", cmp.Or(t.HoldReason, "without a reason"))
	}
	if !t.CancelRequested.IsZero() {
		table.Row("stop asked for", when(t.CancelRequested))
	}
	table.some("cancel reason", t.CancelReason)
	for _, link := range []struct {
		name string
		id   int64
	}{{"retry_of", t.RetryOf}, {"retried_by", t.RetriedBy}} {
		if link.id > 0 {
			table.Row(link.name, fmt.Sprintf("task %d", link.id))
		}
	}
	if t.ReplayOf > 0 {
		table.Row("replay_of", fmt.Sprintf("task %d, round %d", t.ReplayOf, t.ReplayRound))
	}
}

// plan is what the task is in its plan.
func (table fieldTable) plan(t *manager.Task) {
	if t.Plan == 0 {
		return
	}
	table.Row(planField, t.Plan)
	table.some(stepField, t.Step)
	needs := make([]store.Need, len(t.Needs))
	for i, n := range t.Needs {
		needs[i] = store.Need{Task: n.Task, On: store.When(n.On)}
	}
	table.some("needs", needsText(needs))
}

// place is where and when the task may run.
func (table fieldTable) place(t *manager.Task) {
	table.Row("queue", t.Queue)
	table.Row("priority", t.Priority)
	table.some(envField, t.Env)
	table.some("labels", strings.Join(t.Labels, ", "))
	table.some("resources", amounts(t.Resources))
	table.some("key", t.Key)
}

// amounts are resources as people write them: gpu=1, mem=2048.
func amounts(resources map[string]int) string {
	parts := make([]string, 0, len(resources))
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		parts = append(parts, name+"="+strconv.Itoa(resources[name]))
	}
	return strings.Join(parts, ", ")
}

func (table fieldTable) counters(t *manager.Task) {
	table.Row("fails", fmt.Sprintf("%d (%s)", t.Fails, atMost(t.MaxFails)))
	table.Row("timeouts", fmt.Sprintf("%d (%s)", t.Timeouts, atMost(t.MaxTimeouts)))
	table.Row("losses", fmt.Sprintf("%d (%s)", t.Losses, atMost(t.MaxLosses)))
	if t.Faults > 0 || t.ChargeProgram {
		table.Row("faults", fmt.Sprintf("%d (%s; not the program's own)", t.Faults, atMost(t.MaxFaults)))
	}
	if t.Releases > 0 {
		table.Row("releases", fmt.Sprintf("%d (handed back, at no cost)", t.Releases))
	}
}

// atMost is how often something may happen.
func atMost(l statemachine.Limit) string {
	if l == statemachine.Unlimited {
		return route.Unlimited
	}
	return "at most " + l.Text()
}

// policy is what happens after a failure, where it is not the plain thing.
func (table fieldTable) policy(t *manager.Task) {
	if t.ChargeProgram {
		table.Row("charge", manager.ChargeProgram)
	}
	for _, name := range []string{
		"retry_delay", "retry_backoff", "retry_max_delay", "retry_jitter", "retry_exit_codes", "fatal_exit_codes",
	} {
		table.some(name, t.Fields[name])
	}
}
