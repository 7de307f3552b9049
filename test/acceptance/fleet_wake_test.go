package acceptance

import (
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A wake-up goes to one waiter. If that is killed before it claims, a server wakes the
// next: here a worker that would not look by itself for ten minutes.
func TestLostWakeUp(t *testing.T) {
	t.Parallel()
	w := worldOn(t, storetest.On(t, redistest.Start(t)))
	w.server(t)
	w.worker(t, "w", "slots=1", "sleep_initial=600", "sleep_max=600")
	spec, l := w.waiting(t, "ledger", "")
	busy := w.open(t, spec)[0]
	w.await(t, busy, sm.Running)
	list := w.Key("wake:" + task.Bucket{}.Name())
	w.Raw.Del(t.Context(), list)
	first := make(chan error, 1)
	go func() { first <- w.Raw.BLPop(t.Context(), time.Hour, list).Err() }() // will be woken, and do nothing
	waiters := func(n int) {
		t.Helper()
		wait.Eventually(t, patience, func() bool {
			clients, err := w.Raw.ClientList(t.Context()).Result()
			found := 0
			for client := range strings.Lines(clients) {
				if strings.Contains(client, "cmd=blpop") && strings.Contains(client, "flags=b") {
					found++
				}
			}
			return err == nil && found == n
		}, "not %d wait", n)
	}
	waiters(2) // the server is one
	l.release(t)
	w.await(t, busy, sm.Succeeded)
	waiters(3)
	id := w.open(t, w.script(t, "plain", "true"))[0]
	if err := wait.Receive(t, patience, first, "nobody is woken"); err != nil {
		t.Fatal(err)
	}
	stamps := storetest.Stamps(w.await(t, id, sm.Succeeded), 0)
	t.Logf("claimed %v s after it was opened", float64(stamps["running"].Sub(stamps["open"]))/float64(sm.Second))
}
