package worker

import (
	"context"
	"errors"
	"testing"

	sm "github.com/tdf-go/tdf/statemachine"
)

// settling are handlers of which one succeeds and one fails.
func settling(o *options) {
	o.Handlers = map[string]Handler{
		"good": func(context.Context, *Job) error { return nil },
		"bad":  func(context.Context, *Job) error { return errors.New("it broke") },
	}
}

// A success needs no server, unless the settings say so; a failure does, and so does the success of a task of a plan.
func TestSettle(t *testing.T) {
	t.Parallel()
	for who, good := range map[string]sm.State{"worker": sm.Succeeded, "server": sm.Executed} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			w := s.start(t, settling, setting(t, "settle="+who))
			succeeds, fails := s.open(t, forHandler("good")), s.open(t, forHandler("bad"))
			for id, want := range map[int64]sm.State{succeeds: good, fails: sm.Executed} {
				if got := s.await(t, id, sm.Executed); got.State != want {
					t.Errorf("task %d is %s, want %s", id, got.State, want)
				}
			}
			w.log.await(t, "moving task 1: running -> executed")
			if n := w.log.count("moving task 1: executed -> succeeded"); (n == 1) != (who == "worker") {
				t.Errorf("the worker says %d times that it has settled the task", n)
			}
			s.settle(t, succeeds, sm.Succeeded)
			s.settle(t, fails, sm.Failed)
		})
	}
}

// What happened to the task since its claim is a server's to judge.
func TestSettledByServer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun, release := make(chan struct{}), make(chan struct{})
	w := s.start(t, settling, func(o *options) {
		o.Handlers["slow"] = func(context.Context, *Job) error {
			close(begun)
			<-release
			return nil
		}
	})
	id := s.open(t, forHandler("slow"))
	<-begun
	held := s.Task(t, id)
	s.Raw.HIncrBy(t.Context(), s.Key("task:1"), "rev", 1)
	close(release)
	w.log.await(t, "moving task 1: running -> executed")
	if got := s.Task(t, id); got.State != sm.Executed || w.log.count("executed -> succeeded") != 0 {
		t.Errorf("from rev %d the task is %s at rev %d", held.Rev, got.State, got.Rev)
	}
	s.settle(t, id, sm.Succeeded)
}

// What waits on disk is settled by a server: older workers, and other sessions, can read it too.
func TestSpooledIsNotSettled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w, err := assemble(s.options(t, s.Store))
	if err != nil {
		t.Fatal(err)
	}
	w.openSpool()
	defer w.closeSpool()
	commit := Commit{Move: sm.Move{ID: 1, Event: sm.Report, Actor: sm.Worker, Fenced: true, Claim: "c", From: sm.Running, To: sm.Succeeded, Via: "executed", Until: 7}}
	if !w.spoolCommit("1.0.c", &commit) || !commit.Settles() {
		t.Fatalf("not kept, or changed: %+v", commit)
	}
	entries, err := w.spool.All()
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d entries, error %v", len(entries), err)
	}
	kept, err := readSpooled(&entries[0])
	if err != nil || kept.Move != commit.Unsettled() {
		t.Errorf("kept %+v, error %v", kept.Move, err)
	}
}
