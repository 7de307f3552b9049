package store_test

import (
	"fmt"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

// TestStopsAreTold: a stop that is asked for reaches the worker, and nobody else.
func TestStopsAreTold(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	w, v := sp.Register(t, "w"), sp.Register(t, "v")
	sp.Open(t, storetest.Spec(), storetest.Spec())
	claimed := sp.ClaimUnder(t, w, 1)
	sp.ClaimUnder(t, v, 1)
	stopCall(t, sp.Store).must(t)
	if r := sp.Renew(t, w); fmt.Sprint(r.Stops) != "[1]" {
		t.Errorf("w is to stop %v", r.Stops)
	}
	if r := sp.Renew(t, v); len(r.Stops) != 0 {
		t.Errorf("v is to stop %v", r.Stops)
	}
	task := sp.Task(t, 1)
	if !task.StopAsked || task.Fields["cancel_reason"] != "why" || task.State != statemachine.Running {
		t.Errorf("fields %v", task.Fields)
	}
	// The worker has not heard of it, and wants the task opened again.
	m, err := statemachine.Decide(&claimed[0].Task, statemachine.Occurrence{
		Event: statemachine.HandBack, Actor: statemachine.Worker, Claim: claimed[0].Task.Current.Claim,
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	out, err := sp.Store.Apply(t.Context(), tasks.Commit{Move: m, Writer: "w"})
	if err != nil || !sameRefusal(out[0].Err, statemachine.ErrStopAsked) {
		t.Errorf("handed back: %+v, %v", out, err)
	}
	workerCall(statemachine.Terminate)(t, sp.Store).must(t)
	if r := sp.Renew(t, w); len(r.Stops) != 0 {
		t.Errorf("w is to stop %v, which has ended", r.Stops)
	}
}
