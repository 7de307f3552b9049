package statemachine

// The cells of the matrix that later sources add: hold, cancel of what runs,
// excuses, exit codes and rests (Disbatch; Toil for failures that are not charged).

// rested is sampleNow plus the third rest: the sample has failed and timed out
// once, so that the next count is the third.
const rested = sampleNow + Time(4*Second)

func rests(t *Task) { t.Backoff = Backoff{Delay: Second, Factor: 2} }

func restsUntil(at Time) func(*Task) { return func(t *Task) { t.NotBefore = at } }

func stopAsked(t *Task) { t.StopAsked = true }

func both(f, g func(*Task)) func(*Task) {
	return func(t *Task) {
		f(t)
		g(t)
	}
}

func createProbes() []probe {
	return []probe{
		plain(want{to: Open}),
		{name: "on hold", asked: func(o *Occurrence) { o.Held = true }, want: want{to: Blocked}},
	}
}

// askStopProbes: the task stays where it is, and may be asked again.
func askStopProbes(state State) []probe {
	marked := want{to: state, stop: true}
	return []probe{
		plain(marked),
		{name: "a second time", task: stopAsked, want: marked},
		{name: "the one who asks holds no claim", asked: func(o *Occurrence) { o.Claim, o.Round = "", 0 }, want: marked},
	}
}

func cancelRunningProbes() []probe {
	return append(askStopProbes(Running), probe{
		name: "a foreign client cannot be asked", task: func(t *Task) { t.Current.Claim = "" }, want: want{to: Terminated},
	})
}

// exitProbes: an exit code decides only where there is one, and never raises a limit.
func exitProbes() []probe {
	again := want{to: Open, via: StampFailure, count: Fails, next: true}
	over := want{to: Failed, via: StampFailure, count: Fails}
	return []probe{
		{name: "a fatal exit code", task: exit(2, nil, []int{1, 2}), want: over},
		{name: "not a fatal one", task: exit(3, nil, []int{1, 2}), want: again},
		{name: "a code to retry", task: exit(75, []int{74, 75}, nil), want: again},
		{name: "no code to retry", task: exit(1, []int{74, 75}, nil), want: over},
		{name: "fatal wins", task: exit(75, []int{75}, []int{75}), want: over},
		{name: "exit code 0 is one too", task: exit(0, []int{75}, nil), want: over},
		{name: "a code to retry, limit reached", task: both(exit(75, []int{75}, nil), fails(2, 2)), want: over},
		{name: "no exit code", task: both(exit(2, []int{75}, []int{2}), func(t *Task) { t.Current.HasExit = false }), want: again},
		{name: "a fatal code without an error", task: both(exit(2, nil, []int{2}), executed(claimedAt, false)), want: want{to: Succeeded}},
	}
}

func exit(code int, retry, fatal []int) func(*Task) {
	return func(t *Task) {
		t.Current.Failed, t.Current.ExitCode, t.Current.HasExit = true, code, true
		t.RetryCodes, t.FatalCodes = retry, fatal
	}
}

// wordProbes: what the worker says of the next round comes before the rest that the
// task says, and never raises a limit.
func wordProbes() []probe {
	again := want{to: Open, via: StampFailure, count: Fails, next: true, rest: at200 + 7}
	over := want{to: Failed, via: StampFailure, count: Fails}
	excuse := func(o *Occurrence) { o.Excused = true }
	word := func(at Time) func(*Task) {
		return both(rests, func(t *Task) { t.Current.Failed, t.Current.Retry, t.Faults = true, at, 0 })
	}
	return []probe{
		{name: "never again", task: word(Never), want: over},
		{name: "never again, with a code to retry", task: both(exit(75, []int{75}, nil), word(Never)), want: over},
		{name: "never again, and nobody else is to blame", task: word(Never), asked: excuse, want: over},
		{name: "never again, for a class that is not charged", task: both(failedBy(ClassHost), word(Never)), want: over},
		{name: "not before a moment", task: word(at200 + 7), want: again},
		{name: "a moment that has passed", task: word(1), want: want{to: Open, via: StampFailure, count: Fails, next: true, rest: 1}},
		{name: "a moment, limit reached", task: both(word(at200+7), fails(2, 2)), want: over},
		{name: "a moment, with a fatal exit code", task: both(exit(2, nil, []int{2}), word(at200+7)), want: over},
		{name: "a moment, excused", task: word(at200 + 7), asked: excuse,
			want: want{to: Open, via: StampFailure, count: Faults, next: true, rest: at200 + 7}},
		{name: "a moment without an error", task: both(word(at200+7), executed(claimedAt, false)), want: want{to: Succeeded}},
		{name: "never again without an error", task: both(word(Never), executed(claimedAt, false)), want: want{to: Succeeded}},
	}
}

// excuseProbes: what is not the task's fault is counted apart, by the server's
// word or by the class.
func excuseProbes() []probe {
	again := want{to: Open, via: StampFailure, count: Faults, next: true}
	over := want{to: Failed, via: StampFailure, count: Faults}
	charged := want{to: Open, via: StampFailure, count: Fails, next: true}
	excuse := func(o *Occurrence) { o.Excused = true }
	all := func(t *Task) { t.ChargeProgram = false }
	probes := []probe{
		{name: "excused by the server", task: faults(1, 2), asked: excuse, want: again},
		{name: "excused though the fails are used up", task: both(faults(0, 1), fails(5, 5)), asked: excuse, want: again},
		{name: "excused once too often", task: faults(2, 2), asked: excuse, want: over},
		{name: "excused once too often, fails left", task: both(faults(2, 2), fails(0, 9)), asked: excuse, want: over},
		{name: "excused, but a stop was asked for", task: both(faults(0, 2), stopAsked), asked: excuse, want: over},
		{name: "excused, but late", task: both(faults(0, 2), executed(at200+1, true)), asked: excuse, want: want{to: Expired}},
		{name: "excused without an error", asked: excuse, want: want{to: Succeeded}},
		{name: "excused, with a fatal exit code", task: both(exit(2, nil, []int{2}), faults(0, 1)), asked: excuse, want: again},
		{name: "excused, with a rest", task: both(faults(0, 2), rests), asked: excuse,
			want: want{to: Open, via: StampFailure, count: Faults, next: true, rest: rested}},
		{name: "the host's error without an error", task: func(t *Task) { t.ChargeProgram, t.Current.Class = true, ClassHost }, want: want{to: Succeeded}},
	}
	for class, excused := range map[Class]bool{
		ClassProgram: false, ClassTime: false, ClassMemory: false, ClassDisk: false, "": false, "unheard of": false,
		ClassFetch: true, ClassHost: true, ClassInfrastructure: true,
	} {
		expect := charged
		if excused {
			expect = again
		}
		probes = append(probes,
			probe{name: "charged for its program, class " + string(class), task: failedBy(class), want: expect},
			probe{name: "charged for all, class " + string(class), task: both(failedBy(class), all), want: charged})
	}
	return probes
}

func faults(n int, limit Limit) func(*Task) {
	return func(t *Task) { t.Faults, t.MaxFaults, t.Current.Failed = n, limit, true }
}

func failedBy(c Class) func(*Task) {
	return func(t *Task) { t.ChargeProgram, t.Current.Failed, t.Current.Class = true, true, c }
}
