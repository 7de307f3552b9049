package store_test

import (
	"errors"
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// reportOf is the order that reports a task.
func reportOf(t *testing.T, task *tasks.Claimed) tasks.Commit {
	t.Helper()
	m, err := statemachine.Decide(&task.Task, statemachine.Occurrence{
		Event: statemachine.Report, Actor: statemachine.Worker, Claim: task.Task.Current.Claim, Round: task.Task.Round,
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return tasks.Commit{Move: m, Writer: "w", Bucket: task.Bucket}
}

func claimOf(n int) *tasks.ClaimRequest {
	return &tasks.ClaimRequest{Worker: "w", Request: conn.NewToken(), Candidates: storetest.Free(task.Bucket{}), Max: n}
}

func inState(t *testing.T, sp *storetest.Space, id int64, want statemachine.State) {
	t.Helper()
	if got := sp.Task(t, id).State; got != want {
		t.Errorf("task %d is %s, want %s", id, got, want)
	}
}

// A turn does what a report and a claim would do, also where Redis has lost the scripts.
func TestTurn(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]bool{"scripts known": false, "scripts lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			if lose { // on a Redis of its own: others would lose theirs too
				sp = storetest.On(t, redistest.Start(t))
			}
			ids := sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec())
			held := sp.Claim(t, "w", 1)
			if lose {
				if err := sp.Raw.ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			turn := sp.Store.Turn(t.Context(), []tasks.Commit{reportOf(t, &held[0])}, claimOf(1))
			if turn.Moved != nil || turn.Claimed != nil {
				t.Fatalf("%+v", turn)
			}
			if len(turn.Outcomes) != 1 || turn.Outcomes[0].Result != statemachine.Moved {
				t.Errorf("outcomes %+v", turn.Outcomes)
			}
			if got := turn.Reply.Tasks; len(got) != 1 || got[0].Task.ID != ids[1] || !turn.Reply.More {
				t.Errorf("reply %+v", turn.Reply)
			}
			inState(t, sp, ids[0], statemachine.Executed)
			inState(t, sp, ids[1], statemachine.Running)
		})
	}
}

// One of the two may fail alone; what cannot be sent does nothing at all.
func TestTurnInPart(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	ids := sp.Open(t, storetest.Spec(), storetest.Spec())
	held := sp.Claim(t, "w", 1)
	order := reportOf(t, &held[0])
	over := claimOf(1)
	over.Incarnation = 99
	turn := sp.Store.Turn(t.Context(), []tasks.Commit{order}, over)
	if turn.Moved != nil || !errors.Is(turn.Claimed, conn.ErrLeaseLost) {
		t.Errorf("with a session that is over: %+v", turn)
	}
	inState(t, sp, ids[0], statemachine.Executed)
	turn = sp.Store.Turn(t.Context(), []tasks.Commit{order}, claimOf(0))
	if turn.Moved == nil || turn.Claimed == nil {
		t.Errorf("with room for nothing: %+v", turn)
	}
	order.Fields = make([]string, tasks.MaxFields+2)
	turn = sp.Store.Turn(t.Context(), []tasks.Commit{order}, claimOf(1))
	if turn.Moved == nil || turn.Claimed == nil {
		t.Errorf("with too large a report: %+v", turn)
	}
	inState(t, sp, ids[1], statemachine.Open)
}
