package statemachine

import "slices"

// expected is the matrix as the specification has it, written by hand and not
// derived from the table. A cell that is not here must be refused.
func expected() map[cell][]probe {
	m := map[cell][]probe{
		{None, Create, Manager}: createProbes(),
		{None, Create, Server}:  createProbes(),

		{Open, Claim, Worker}:    claimProbes(),
		{Open, Deadline, Server}: overdueProbes(),
		{Open, Hold, Manager}:    {plain(want{to: Blocked})},
		{Open, Cancel, Manager}:  {plain(want{to: Cancelled})},

		{Blocked, Unblock, Manager}: {plain(want{to: Open})},
		{Blocked, Unblock, Server}:  {plain(want{to: Open})},
		{Blocked, Deadline, Server}: overdueProbes(),
		{Blocked, Cancel, Manager}:  {plain(want{to: Cancelled})},
		{Blocked, Cancel, Server}:   {plain(want{to: Cancelled})},

		{Running, Report, Worker}:      fenced(slices.Concat(reportProbes(), successProbes())),
		{Running, StopOverdue, Worker}: fenced(stopOverdueProbes()),
		{Running, HandBack, Worker}:    fenced(handBackProbes()),
		{Running, Terminate, Worker}:   fenced([]probe{plain(want{to: Terminated, fenced: true})}),
		{Running, Cancel, Manager}:     cancelRunningProbes(),
		{Running, Deadline, Server}:    runningDeadlineProbes(),
		{Running, Lose, Server}:        loseProbes(),
		{Running, Lose, Worker}:        loseProbes(),

		{Executed, Settle, Server}:  slices.Concat(settleProbes(), exitProbes(), wordProbes(), excuseProbes()),
		{Executed, Cancel, Manager}: askStopProbes(Executed),
	}
	for _, end := range []State{Succeeded, Failed, TimedOut, Expired, Cancelled, Terminated, Orphaned} {
		m[cell{end, Archive, Manager}] = []probe{plain(want{to: Archived})}
	}
	return m
}

// plain probes a row without a condition, early and late.
func plain(w want) probe { return probe{name: "at any time", now: at200 + 1, want: w} }

// fenced adds to a worker's probes everyone who does not hold the round.
func fenced(holder []probe) []probe {
	return append(holder,
		probe{name: "someone else's claim", asked: func(o *Occurrence) { o.Claim = "x" }, err: ErrStale},
		probe{name: "the claim of an earlier round", asked: func(o *Occurrence) { o.Claim, o.Round = "b", 1 }, err: ErrStale},
		probe{name: "the right claim, an earlier round", asked: func(o *Occurrence) { o.Round = 1 }, err: ErrStale},
		probe{name: "the right claim, a later round", asked: func(o *Occurrence) { o.Round = 3 }, err: ErrStale},
		probe{name: "no claim", asked: func(o *Occurrence) { o.Claim = "" }, err: ErrStale},
		probe{name: "no claim on a foreign round", task: func(t *Task) { t.Current.Claim = "" },
			asked: func(o *Occurrence) { o.Claim = "" }, err: ErrStale},
	)
}

// claimProbes: A05, A15. Both ends of the time window belong to it.
func claimProbes() []probe {
	taken := want{to: Running}
	return []probe{
		{name: "just before start_after", now: at100 - 1, err: ErrNotDue},
		{name: "at start_after", now: at100, want: taken},
		{name: "just before the end of its rest", task: restsUntil(at100 + 9), now: at100 + 8, err: ErrNotDue},
		{name: "at the end of its rest", task: restsUntil(at100 + 9), now: at100 + 9, want: taken},
		{name: "rested, but before start_after", task: restsUntil(at100 - 9), now: at100 - 1, err: ErrNotDue},
		{name: "resting beyond end_before", task: restsUntil(at200 + 1), now: at200 + 1, err: ErrNotDue},
		{name: "at end_before", now: at200, want: taken},
		{name: "just after end_before", now: at200 + 1, err: ErrNotDue},
		{name: "by a foreign client", asked: func(o *Occurrence) { o.Claim = "" }, want: taken},
		{name: "without an end", task: func(t *Task) { t.EndBefore = Never }, now: Never, want: taken},
	}
}

// overdueProbes: A15, A25 for tasks that wait.
func overdueProbes() []probe {
	return []probe{
		{name: "before end_before", err: ErrNotDue},
		{name: "at end_before", now: at200, err: ErrNotDue},
		{name: "just after end_before", now: at200 + 1, want: want{to: Expired}},
		{name: "without an end", task: func(t *Task) { t.EndBefore = Never }, now: Never, err: ErrNotDue},
	}
}

func reportProbes() []probe {
	executed := want{to: Executed, fenced: true}
	return []probe{
		{name: "without an error", want: executed},
		{name: "with an error", asked: func(o *Occurrence) { o.Failed = true }, want: executed},
		{name: "with a class and an exit code", asked: func(o *Occurrence) {
			o.Failed, o.Class, o.ExitCode, o.HasExit, o.Retry = true, ClassMemory, 137, true, at200
		}, want: executed},
		{name: "a stop was asked for", task: stopAsked, want: executed},
		{name: "overdue, but nobody has looked", now: at200 + 1, want: executed},
	}
}

// successProbes: a worker that settles does so in time, without an error, and where
// nothing was asked. The round began at 150 s, its timeout is 10 s, and end_before is
// 200 s.
func successProbes() []probe {
	at160 := claimedAt + Time(10*Second)
	settled := func(until Time) want { return want{to: Succeeded, via: "executed", fenced: true, until: until} }
	executed := want{to: Executed, fenced: true}
	settles := func(o *Occurrence) { o.Settles = true }
	endless := func(t *Task) { t.Timeout = Forever }
	return []probe{
		{name: "settles", asked: settles, want: settled(at160)},
		{name: "settles, exactly at the timeout", asked: settles, now: at160, want: settled(at160)},
		{name: "settles, just after the timeout", asked: settles, now: at160 + 1, want: executed},
		{name: "settles, the servers' grace does not matter", asked: func(o *Occurrence) { o.Settles, o.Grace = true, 3*Second }, now: at160 + 1, want: executed},
		{name: "settles, exactly at end_before", task: endless, asked: settles, now: at200, want: settled(at200)},
		{name: "settles, just after end_before", task: endless, asked: settles, now: at200 + 1, want: executed},
		{name: "settles, without an end", task: func(t *Task) { t.Timeout, t.EndBefore = Forever, Never }, asked: settles, now: at200 + 1, want: settled(Never)},
		{name: "settles, limits do not matter", task: func(t *Task) { t.Fails, t.MaxFails = 9, 0 }, asked: settles, want: settled(at160)},
		{name: "would settle, but has an error", asked: func(o *Occurrence) { o.Settles, o.Failed = true, true }, want: executed},
		{name: "would settle, but a stop was asked for", task: stopAsked, asked: settles, want: executed},
	}
}

// stopOverdueProbes: A11, A12 seen by the worker. The counter after the
// increment is compared with its maximum.
func stopOverdueProbes() []probe {
	again := want{to: Open, via: StampTimeout, count: Timeouts, next: true, fenced: true}
	over := want{to: TimedOut, via: StampTimeout, count: Timeouts, fenced: true}
	return []probe{
		{name: "the raised counter reaches its maximum", task: timeouts(1, 2), want: again},
		{name: "the raised counter exceeds its maximum", task: timeouts(2, 2), want: over},
		{name: "no timeout allowed", task: timeouts(0, 0), want: over},
		{name: "unlimited", task: timeouts(1<<30, Unlimited), want: again},
		{name: "a stop was asked for", task: stopAsked, want: over},
		{name: "with a rest", task: rests, want: want{to: Open, via: StampTimeout, count: Timeouts, next: true, fenced: true, rest: rested}},
		{name: "the last time, no rest", task: both(timeouts(2, 2), rests), want: over},
	}
}

func handBackProbes() []probe {
	again := want{to: Open, count: Releases, next: true, fenced: true}
	return []probe{
		{name: "the first time", want: again},
		{name: "any number of times", task: func(t *Task) { t.Releases = 1 << 30 }, want: again},
		{name: "no limit of another counter matters", task: func(t *Task) {
			t.MaxFails, t.MaxTimeouts, t.MaxLosses, t.MaxFaults = 0, 0, 0, 0
		}, want: again},
		{name: "it does not cost a rest", task: rests, want: again},
		{name: "not before a moment", task: rests, asked: func(o *Occurrence) { o.Retry = at200 + 1 },
			want: want{to: Open, count: Releases, next: true, fenced: true, rest: at200 + 1}},
		{name: "never is a moment far away", asked: func(o *Occurrence) { o.Retry = Never },
			want: want{to: Open, count: Releases, next: true, fenced: true, rest: latest}},
		{name: "a stop was asked for", task: stopAsked, asked: func(o *Occurrence) { o.Retry = at200 },
			want: want{to: Terminated, fenced: true}},
	}
}

// runningDeadlineProbes: A11, A12, A14, A16. The round began at 150 s, its
// timeout is 10 s, and end_before is 200 s.
func runningDeadlineProbes() []probe {
	again := want{to: Open, via: StampTimeout, count: Timeouts, next: true}
	over := want{to: TimedOut, via: StampTimeout, count: Timeouts}
	at160 := claimedAt + Time(10*Second)
	grace := func(o *Occurrence) { o.Grace = 3 * Second }
	foreign := func(t *Task) { t.Current.Claim = "" }
	return []probe{
		{name: "exactly at the timeout", now: at160, err: ErrNotDue},
		{name: "just after the timeout", now: at160 + 1, want: again},
		{name: "exactly at the end of the grace", asked: grace, now: at160 + Time(3*Second), err: ErrNotDue},
		{name: "just after the grace", asked: grace, now: at160 + Time(3*Second) + 1, want: again},
		{name: "no grace for a foreign claim", asked: grace, task: foreign, now: at160 + 1, want: again},
		{name: "a foreign claim in time", asked: grace, task: foreign, now: at160, err: ErrNotDue},
		{name: "the raised counter reaches its maximum", task: timeouts(1, 2), now: at160 + 1, want: again},
		{name: "the raised counter exceeds its maximum", task: timeouts(2, 2), now: at160 + 1, want: over},
		{name: "once too often, exactly at the timeout", task: timeouts(2, 2), now: at160, err: ErrNotDue},
		{name: "once too often, within the grace", task: timeouts(2, 2), asked: grace, now: at160 + 1, err: ErrNotDue},
		{name: "a stop was asked for", task: stopAsked, now: at160 + 1, want: over},
		{name: "a stop was asked for, exactly at the timeout", task: stopAsked, now: at160, err: ErrNotDue},
		{name: "a stop was asked for, end_before comes first", task: stopAsked, now: at200 + 1, want: want{to: Expired}},
		{name: "with a rest", task: rests, now: at160 + 1,
			want: want{to: Open, via: StampTimeout, count: Timeouts, next: true, rest: rested - sampleNow + at160 + 1}},
		{name: "without a timeout", task: func(t *Task) { t.Timeout = Forever }, now: at200, err: ErrNotDue},
		{name: "at end_before", task: func(t *Task) { t.Timeout = 50 * Second }, now: at200, err: ErrNotDue},
		{name: "end_before comes first", now: at200 + 1, want: want{to: Expired}},
		{name: "end_before knows no grace", asked: grace, task: func(t *Task) { t.Timeout = Forever },
			now: at200 + 1, want: want{to: Expired}},
	}
}

func loseProbes() []probe {
	void := func(o *Occurrence) { o.FromLostEpoch = true }
	unbegun := func(o *Occurrence) { o.Unbegun = true }
	free := want{to: Open, count: Releases, next: true}
	return []probe{
		{name: "not begun, no loss allowed", task: losses(0, 0), asked: unbegun, want: free},
		{name: "not begun, a stop was asked for", task: stopAsked, asked: unbegun, want: want{to: Terminated}},
		{name: "the epoch is over", asked: void, want: free},
		{name: "the epoch is over, beyond the limit", task: losses(2, 2), asked: void, want: free},
		{name: "the epoch is over, no loss allowed", task: losses(0, 0), asked: void, want: free},
		{name: "the epoch is over, a stop was asked for", task: stopAsked, asked: void, want: want{to: Terminated}},
		{name: "the raised counter reaches its maximum", task: losses(1, 2), want: want{to: Open, count: Losses, next: true}},
		{name: "the raised counter exceeds its maximum", task: losses(2, 2), want: want{to: Orphaned, count: Losses}},
		{name: "no loss allowed", task: losses(0, 0), want: want{to: Orphaned, count: Losses}},
		{name: "someone else asks", asked: func(o *Occurrence) { o.Claim, o.Round = "", 0 },
			want: want{to: Open, count: Losses, next: true}},
		{name: "it does not cost a rest", task: rests, want: want{to: Open, count: Losses, next: true}},
		{name: "a stop was asked for", task: stopAsked, want: want{to: Terminated}},
		{name: "a stop was asked for, beyond the limit", task: both(losses(2, 2), stopAsked), want: want{to: Terminated}},
	}
}

// settleProbes: A08 to A10, A17, A18. It is the time of execution that counts,
// not the time at which the server looks.
func settleProbes() []probe {
	again := want{to: Open, via: StampFailure, count: Fails, next: true}
	over := want{to: Failed, via: StampFailure, count: Fails}
	return []probe{
		{name: "in time and without an error", want: want{to: Succeeded}},
		{name: "looked at long after end_before", now: Never, want: want{to: Succeeded}},
		{name: "executed exactly at end_before", task: executed(at200, false), now: Never, want: want{to: Succeeded}},
		{name: "executed just after end_before", task: executed(at200+1, false), want: want{to: Expired}},
		{name: "late and with an error", task: executed(at200+1, true), want: want{to: Expired}},
		{name: "the raised counter reaches its maximum", task: fails(1, 2), want: again},
		{name: "the raised counter exceeds its maximum", task: fails(2, 2), want: over},
		{name: "no failure allowed", task: fails(0, 0), want: over},
		{name: "with a rest", task: both(fails(1, 2), rests),
			want: want{to: Open, via: StampFailure, count: Fails, next: true, rest: rested}},
		{name: "the last time, no rest", task: both(fails(2, 2), rests), want: over},
		{name: "a stop was asked for", task: both(fails(0, 2), stopAsked), want: over},
		{name: "a stop was asked for, without an error", task: stopAsked, want: want{to: Succeeded}},
		{name: "limits do not matter without an error", task: func(t *Task) { t.Fails, t.MaxFails = 9, 0 }, want: want{to: Succeeded}},
	}
}

func timeouts(n int, limit Limit) func(*Task) {
	return func(t *Task) { t.Timeouts, t.MaxTimeouts = n, limit }
}

func losses(n int, limit Limit) func(*Task) {
	return func(t *Task) { t.Losses, t.MaxLosses = n, limit }
}

func fails(n int, limit Limit) func(*Task) {
	return func(t *Task) { t.Fails, t.MaxFails, t.Current.Failed = n, limit, true }
}

func executed(at Time, failed bool) func(*Task) {
	return func(t *Task) { t.Current.Executed, t.Current.Failed = at, failed }
}
