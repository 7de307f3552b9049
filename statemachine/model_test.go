package statemachine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStates(t *testing.T) {
	t.Parallel()
	ended := []State{Succeeded, Failed, TimedOut, Expired, Cancelled, Terminated, Orphaned}
	if diff := cmp.Diff(ended, Outcomes()); diff != "" {
		t.Error(diff)
	}
	for _, s := range append(States(), None, "timeout", "failure") {
		if got, want := s.Valid(), slices.Contains(States(), s); got != want {
			t.Errorf("%q.Valid() = %v", s, got)
		}
		if got, want := s.IsOutcome(), slices.Contains(ended, s); got != want {
			t.Errorf("%q.Ended() = %v", s, got)
		}
		if got, want := s.Terminal(), s == Archived || slices.Contains(ended, s); got != want {
			t.Errorf("%q.Settled() = %v", s, got)
		}
	}
	if len(States()) != 12 {
		t.Errorf("%d states", len(States()))
	}
}

// TestCharged: the five classes that a task need not pay for, and no others.
func TestCharged(t *testing.T) {
	t.Parallel()
	excused := []Class{ClassFetch, ClassHost, ClassInfrastructure, ClassShortage, ClassHandler}
	for _, c := range append([]Class{ClassProgram, ClassTime, ClassMemory, ClassDisk, "", "unheard of"}, excused...) {
		if got, want := c.charged(), !slices.Contains(excused, c); got != want {
			t.Errorf("%q: charged %v", c, got)
		}
	}
}

// TestTableIsACopy: nobody outside can change the rules.
func TestTableIsACopy(t *testing.T) {
	t.Parallel()
	rows := Table()
	rows[0].To, rows[0].Actors[0] = Archived, Worker
	if diff := cmp.Diff(Blocked, table[0].To); diff != "" || table[0].Actors[0] != Manager {
		t.Error("the caller of Table can change the table")
	}
}

// TestTableSays: every row explains itself and every value of it is known.
func TestTableSays(t *testing.T) {
	t.Parallel()
	for i, row := range table {
		known := slices.Contains(Events(), row.Event) && row.To.Valid() && (row.From == None || row.From.Valid()) && len(row.Actors) > 0
		if !known || row.Why == "" || row.When == "" {
			t.Errorf("row %d: %+v", i, row)
		}
		if row.Fenced && !slices.Equal(row.Actors, []Actor{Worker}) {
			t.Errorf("row %d: only workers hold claims", i)
		}
		if row.AskStop != (row.To == row.From) || row.AskStop && (row.Count != "" || row.Via != "") {
			t.Errorf("row %d: a task stays where it is exactly if a stop is asked for", i)
		}
		if row.NextRound != (row.To == Open && row.Count != "") {
			t.Errorf("row %d: a round ends exactly if a counter says how, and the task opens again", i)
		}
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		state State
		task  func(*Task)
		grace Duration
		want  Time
	}{
		{"open", Open, nil, 0, at200},
		{"blocked", Blocked, nil, 0, at200},
		{"running", Running, nil, 0, claimedAt + Time(10*Second)},
		{"running under a claim", Running, nil, 3 * Second, claimedAt + Time(13*Second)},
		{"a foreign claim", Running, func(t *Task) { t.Current.Claim = "" }, 3 * Second, claimedAt + Time(10*Second)},
		{"end_before first", Running, func(t *Task) { t.EndBefore = claimedAt + 1 }, 0, claimedAt + 1},
		{"no timeout", Running, func(t *Task) { t.Timeout = Forever }, 3 * Second, at200},
		{"nothing", Running, func(t *Task) { t.Timeout, t.EndBefore = Forever, Never }, 3 * Second, Never},
		{"executed", Executed, nil, 0, Never},
		{"ended", Failed, nil, 0, Never},
		{"archived", Archived, nil, 0, Never},
	} {
		task := sample(c.state)
		if c.task != nil {
			c.task(&task)
		}
		if got := task.Deadline(c.grace); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestMoveSays: the words of the log and the stamps of the hash. The stamp of
// the way belongs to the round that ends (A12: 0:timeout, not 1:timeout).
func TestMoveSays(t *testing.T) {
	t.Parallel()
	again := Move{From: Running, Round: 0, To: Open, Via: StampTimeout, NextRound: true}
	over := Move{From: Executed, Round: 2, To: Failed, Via: StampFailure}
	plain := Move{From: Succeeded, Round: 2, To: Archived}
	settled := Move{Event: Report, From: Running, Round: 2, To: Succeeded, Via: string(Executed), Until: 7}
	asked := Move{From: Running, Round: 2, To: Running, AskStop: true}
	atOnce := settled
	atOnce.Archives = true
	for _, c := range []struct {
		m      Move
		edges  string
		stamps string
		round  int
	}{
		{again, "running -> timeout, timeout -> open", "0:timeout 1:open", 1},
		{over, "executed -> failure, failure -> failed", "2:failure 2:failed", 2},
		{plain, "succeeded -> archived", "2:archived", 2},
		{asked, "", "", 2},
		{settled, "running -> executed, executed -> succeeded", "2:executed 2:succeeded", 2},
		{settled.Unsettled(), "running -> executed", "2:executed", 2},
		{atOnce, "running -> executed, executed -> succeeded, succeeded -> archived", "2:executed 2:succeeded 2:archived", 2},
		{atOnce.Unsettled(), "running -> executed", "2:executed", 2},
	} {
		var edges []string
		for _, e := range c.m.Edges() {
			edges = append(edges, e.From+" -> "+e.To)
		}
		if got := strings.Join(edges, ", "); got != c.edges {
			t.Errorf("edges %s, want %s", got, c.edges)
		}
		if got := strings.Join(c.m.Stamps(), " "); got != c.stamps {
			t.Errorf("stamps %s, want %s", got, c.stamps)
		}
		if c.m.ToRound() != c.round {
			t.Errorf("%s: round %d, want %d", c.edges, c.m.ToRound(), c.round)
		}
	}
}

// A move that ends a task with AtOnce archives it as well. No other move does.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	for _, atOnce := range []bool{false, true} {
		task := sample(Open)
		task.AtOnce = atOnce
		end, err := Decide(&task, Occurrence{Event: Cancel, Actor: Manager}, sampleNow)
		if err != nil || end.Archives != atOnce {
			t.Errorf("at once %v: %+v, %v", atOnce, end, err)
		}
		hold, err := Decide(&task, Occurrence{Event: Hold, Actor: Manager}, sampleNow)
		if err != nil || hold.Archives {
			t.Errorf("at once %v: %+v, %v", atOnce, hold, err)
		}
	}
}

func TestErrorsSay(t *testing.T) {
	t.Parallel()
	task := sample(Open)
	_, illegal := Decide(&task, Occurrence{Event: Report, Actor: Worker}, sampleNow)
	_, early := Decide(&task, Occurrence{Event: Deadline, Actor: Server}, sampleNow)
	running := sample(Running)
	_, stale := Decide(&running, Occurrence{Event: Report, Actor: Worker, Claim: "x", Round: 1}, sampleNow)
	for _, c := range []struct {
		err  error
		want string
	}{
		{illegal, "task 7 is open: a worker cannot report it"},
		{early, "task 7 is open: deadline: not due"},
		{stale, "task 7, round 1: stale claim: the round is no longer held by this worker"},
		{&FieldError{Value: "x", Want: "a number"}, `"x" is not a number`},
		{&FieldError{Field: "timeout", Value: "x", Want: "a number"}, `field timeout: "x" is not a number`},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("%v, want %s", c.err, c.want)
		}
	}
	if !errors.Is(early, ErrNotDue) || !errors.Is(stale, ErrStale) {
		t.Error("the sentinels are lost")
	}
}

// TestCountersHaveLimits: each counter is its own field and has its own limit;
// handing back has none.
func TestCountersHaveLimits(t *testing.T) {
	t.Parallel()
	task := Task{Fails: 1, Timeouts: 2, Losses: 3, Releases: 4, Faults: 5, MaxFails: 5, MaxTimeouts: 6, MaxLosses: 7, MaxFaults: 8}
	for i, c := range Counters() {
		limit := []Limit{5, 6, 7, Unlimited, 8}[i]
		if task.Counted(c) != i+1 || task.Limit(c) != limit {
			t.Errorf("%s: %d of %d", c, task.Counted(c), task.Limit(c))
		}
		raised := task
		raised.count(c)
		if raised.Counted(c) != i+2 || raised.Ends() != 16 {
			t.Errorf("counting %s raised something else: %+v", c, raised)
		}
	}
}
