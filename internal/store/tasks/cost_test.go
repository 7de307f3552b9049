package tasks

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
)

// What a worker and a manager do for each task is to cost no more than it does: these limits are exact counts, with little to spare.
const (
	mostToClaim  = 1 // the list of tasks
	mostToReport = 7 // 6.2 now
	mostToRead   = 2
)

func TestClaimAllocatesLittle(t *testing.T) {
	fields := conn.Reply{
		int64(7), "e1-7-abcdefgh", "1795230671.000001", "",
		"open", "0", "1", "0", "inf", "inf", "0", "0", "0", "0", "noop", "", "17",
	}
	answer := conn.Reply{"1795230671.000001", "", "inf", []any{}, []any{[]any(fields)}, "", []any{}, "", []any{}, "0"}
	if got := testing.AllocsPerRun(100, func() { decodeClaim(answer) }); got > mostToClaim {
		t.Errorf("a claim of one task allocates %.0f times, want at most %d", got, mostToClaim)
	}
}

func TestReportAllocatesLittle(t *testing.T) {
	s := &Tasks{Conn: &conn.Conn{Keys: conn.NewKeys("test")}}
	const n = 100
	commits := make([]Commit, n)
	for i := range commits {
		id := int64(1_000_000 + i)
		commits[i] = Commit{
			Move: statemachine.Move{
				ID: id, From: statemachine.Running, To: statemachine.Executed, Event: statemachine.Report, Actor: statemachine.Worker,
				Round: 300, Rev: 1000, Fenced: true, Claim: "e1-7-abcdefgh", Deadline: statemachine.Never, Until: statemachine.Never,
			},
			Writer: "worker-1", Lines: []Line{{At: 1795230671000001, Text: "executing task"}},
			Fields: []string{"0:output", "", "0:error", "", "0:exit_code", "0", "0:max_memory", "0"},
		}
	}
	got := testing.AllocsPerRun(10, func() {
		if _, err := s.callOf(commits); err != nil {
			t.Fatal(err)
		}
	}) / n
	if got > mostToReport {
		t.Errorf("the arguments of a report allocate %.1f times, want at most %d", got, mostToReport)
	}
}

func TestReadAllocatesLittle(t *testing.T) {
	fields := map[string]string{
		"program": "noop", "input": "17", "start_after": "0", "end_before": "inf", "timeout": "inf", "max_fails": "0", "max_timeouts": "0",
		"state": "succeeded", "round": "0", "rev": "3", "0:running": "1795230671.000001", "0:executed": "1795230671.100000",
		"0:worker": "worker-1", "0:claim": "e1-7-abcdefgh", "0:exit_code": "0",
	}
	if got := testing.AllocsPerRun(100, func() { decodeTask(7, fields) }); got > mostToRead {
		t.Errorf("a task allocates %.0f times, want at most %d", got, mostToRead)
	}
}
