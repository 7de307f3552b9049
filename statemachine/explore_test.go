package statemachine_test

import (
	"flag"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	sm "github.com/tdf-go/tdf/statemachine"
)

var long = flag.Bool("long", os.Getenv("TDF_LONG") != "", "explore larger worlds, as TDF_LONG=1 does (takes some minutes)")

// work is who does what, beside the worker's claims and closings.
func work(more map[sm.Actor][]sm.Event) map[sm.Actor][]sm.Event {
	by := map[sm.Actor][]sm.Event{
		sm.Manager: {sm.Create, sm.Archive},
		sm.Server:  {sm.Deadline, sm.Settle, sm.Lose},
	}
	for actor, events := range more {
		by[actor] = append(by[actor], events...)
	}
	return by
}

// worlds are the setups that are explored. Time counts in ticks: a task times
// out one tick after its claim and expires one tick after end_before.
func worlds() []setup {
	operator := work(map[sm.Actor][]sm.Event{
		sm.Manager: {sm.Hold, sm.Unblock, sm.Cancel}, sm.Worker: {sm.Lose},
	})
	canceller := work(map[sm.Actor][]sm.Event{sm.Manager: {sm.Cancel}})
	generous := sm.Task{EndBefore: 1, MaxFails: 1, MaxTimeouts: 1, MaxLosses: 1}
	patient := sm.Task{EndBefore: 2, MaxTimeouts: 1}
	strict := sm.Task{EndBefore: 1}
	stopped := sm.Task{EndBefore: 1, MaxFails: 1, MaxTimeouts: 1, MaxLosses: 1, MaxFaults: 1}
	resting := sm.Task{EndBefore: 3, MaxFails: 1, MaxTimeouts: 1, MaxFaults: 1, Backoff: sm.Backoff{Delay: 1, Factor: 2, Max: 2}}
	settled := sm.Task{EndBefore: 1, Timeout: 1, MaxFails: 1, MaxTimeouts: 1}
	atOnce := sm.Task{EndBefore: 1, Timeout: 1, MaxFails: 1, MaxTimeouts: 1, AtOnce: true}
	leased := sm.Task{EndBefore: 2, Timeout: sm.Forever, MaxTimeouts: 1, MaxLosses: 1}
	all := []setup{
		{name: "many programs", tasks: 1, workers: 3, servers: 2, claims: 2, task: strict, horizon: 2, by: work(nil)},
		{name: "many rounds", tasks: 1, workers: 1, servers: 1, claims: 3, task: generous, horizon: 2, by: work(nil)},
		{name: "a late message", tasks: 1, workers: 2, servers: 1, late: 1, claims: 2, task: strict, horizon: 2, by: work(nil)},
		{name: "two late messages", tasks: 1, workers: 1, servers: 1, late: 2, claims: 1, task: generous, horizon: 2, by: work(nil)},
		{name: "grace", tasks: 1, workers: 2, servers: 1, claims: 2, task: patient, grace: 1, horizon: 3, by: work(nil)},
		{name: "two tasks", tasks: 2, workers: 1, servers: 1, claims: 1, task: strict, horizon: 2, by: work(nil)},
		{name: "an operator", tasks: 1, workers: 1, servers: 1, claims: 1, task: strict, horizon: 2, by: operator, edits: 1, holds: 1, held: true},
		{name: "a stop", tasks: 1, workers: 1, servers: 1, late: 1, claims: 1, task: stopped, horizon: 2, by: canceller, excuses: true},
		{name: "a stop and two workers", tasks: 1, workers: 2, servers: 1, claims: 2, task: stopped, horizon: 2, by: canceller, ways: []sm.Event{sm.HandBack}},
		{name: "a stop for a foreign worker", tasks: 1, workers: 1, servers: 1, late: 1, claims: 1, task: stopped, horizon: 2, by: canceller, foreign: true},
		{name: "rests", tasks: 1, workers: 1, servers: 1, claims: 2, task: resting, horizon: 4, by: work(nil), excuses: true, ways: []sm.Event{sm.Report}},
		{name: "words of the worker", tasks: 1, workers: 1, servers: 1, claims: 2, task: resting, horizon: 4, by: work(nil), excuses: true, ways: []sm.Event{sm.Report, sm.HandBack}, words: []sm.Duration{0, 1, sm.Forever}},
		{name: "foreign workers", tasks: 1, workers: 2, servers: 1, late: 1, claims: 2, task: patient, grace: 1, horizon: 3, by: work(nil), foreign: true},
		{name: "leases", tasks: 1, workers: 2, servers: 1, claims: 2, task: leased, horizon: 3, by: work(nil), lease: 1, ways: []sm.Event{sm.HandBack}},
		{name: "leases of two servers", tasks: 1, workers: 1, servers: 2, claims: 2, task: leased, horizon: 3, by: work(nil), lease: 1, ways: []sm.Event{sm.StopOverdue}},
		{name: "leases and a late message", tasks: 1, workers: 1, servers: 1, late: 1, claims: 2, task: leased, horizon: 3, by: work(nil), lease: 1, ways: []sm.Event{sm.Report}},
		{name: "settled by workers", tasks: 1, workers: 2, servers: 1, claims: 2, task: settled, horizon: 3, by: work(nil), ways: []sm.Event{sm.Report}, settles: true, edits: 1},
		{name: "settled by workers, and a stop", tasks: 1, workers: 1, servers: 1, late: 1, claims: 1, task: settled, horizon: 3, by: canceller, ways: []sm.Event{sm.Report}, settles: true},
		{name: "archived at once", tasks: 1, workers: 2, servers: 1, claims: 2, task: atOnce, horizon: 3, by: work(nil), ways: []sm.Event{sm.Report}, settles: true},
		{name: "archived at once, and a stop", tasks: 1, workers: 1, servers: 1, late: 1, claims: 1, task: atOnce, horizon: 3, by: canceller, settles: true},
		{name: "settled under leases", tasks: 1, workers: 1, servers: 1, claims: 2, task: leased, horizon: 3, by: work(nil), lease: 1, ways: []sm.Event{sm.Report}, settles: true},
	}
	return slices.Concat(all, handlingWorlds(), lossWorlds(), aheadWorlds())
}

// leasts are the states a world must have at least: one that shrinks has lost
// something that could happen.
var leasts = map[string]int{
	"many programs": 55_000, "many rounds": 84_000, "a late message": 130_000, "two late messages": 44_000,
	"leases": 211_000, "leases of two servers": 47_000, "leases and a late message": 244_000,
	"grace": 52_000, "two tasks": 26_000, "an operator": 150_000, "foreign workers": 26_000,
	"a stop": 128_000, "a stop and two workers": 70_000, "a stop for a foreign worker": 10_000, "rests": 25_000, "words of the worker": 100_000,
	"two managers": 83_000, "two managers and two tasks": 100_000, "two managers and a worker": 99_000,
	"lost changes": 10_000, "lost changes and a late message": 10_000, "lost changes of two servers": 11_000,
	"lost changes, twice": 34_000, "lost changes, settled by workers": 12_000,
	"settled by workers": 137_000, "settled by workers, and a stop": 128_000, "settled under leases": 37_000,
	"claimed ahead": 107_000, "claimed ahead and a late message": 117_000, "two rounds and one slot": 78_000,
	"archived at once": 18_000, "archived at once, and a stop": 90_000,
}

// TestLongExplore visits every situation of the small worlds and checks every step.
// With -long each world has one claim and one grant more: millions of states.
func TestLongExplore(t *testing.T) {
	t.Parallel()
	var states, steps atomic.Int64
	begin := time.Now()
	t.Cleanup(func() { t.Logf("all worlds: %d states, %d steps, %v", states.Load(), steps.Load(), time.Since(begin)) })
	for _, s := range worlds() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			limit := 500_000
			if *long {
				s.claims++
				s.grants++
				limit = 20_000_000
			}
			e := explore(&s, limit)
			states.Add(int64(e.states))
			steps.Add(int64(e.steps))
			t.Logf("%d states, %d steps", e.states, e.steps)
			switch {
			case e.fault != nil:
				t.Error(e.fault)
			case e.stuck > 0:
				t.Errorf("from %d states nothing leads to archived", e.stuck)
			case e.states < leasts[s.name]:
				t.Errorf("only %d states, want %d", e.states, leasts[s.name])
			}
		})
	}
}
