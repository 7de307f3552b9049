package server

import (
	"context"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
)

// No task runs for ever because the keys of a lease were deleted by hand: the
// repair finds a round that nobody watches over, and one whose worker has
// registered anew without it.
func TestRoundsWithoutALease(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, sp *storetest.Space){
		"unwatched": func(t *testing.T, sp *storetest.Space) {
			t.Helper()
			sp.Raw.Del(t.Context(), sp.Key("held:dead"), sp.Key("lease"))
		},
		"abandoned": func(t *testing.T, sp *storetest.Space) {
			t.Helper()
			sp.Raw.Del(t.Context(), sp.Key("held:dead"), sp.Key("lease"))
			sp.Raw.HSet(t.Context(), sp.Key("worker:dead"), "incarnation", "7")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			ids := openMany(t, sp, 1)
			register(t, sp.Store, "dead", 1)
			damage(t, sp)
			_, l := launch(t, sp, leased, fast)
			wait.Eventually(t, 20*time.Second, func() bool { return sp.Task(t, ids[0]).State == statemachine.Open },
				"the task runs for ever\n%s", l)
			checkFields(t, sp, ids[0], map[string]string{"losses": "1", "round": "1"})
		})
	}
}

// A server that is told to stop does not wait to the end of its poll. Five stop
// within half a poll each, which by chance would hardly happen.
func TestPromptStop(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	for range 5 {
		s, _ := newServer(t, sp)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		wait.Closed(t, 5*time.Second, s.ready, "it does not start")
		begun := time.Now()
		cancel()
		if err := wait.Receive(t, 5*time.Second, done, "it does not stop"); err != nil {
			t.Fatal(err)
		}
		wait.Within(t, "stopping", begun, time.Now(), pollInterval/2)
	}
}
