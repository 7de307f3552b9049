package worker

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	sm "github.com/tdf-go/tdf/statemachine"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// The answer to a heartbeat was long on its way: the lease counts from when it was
// asked for, because the server counts from soon after that.
func TestLeaseCountsFromTheQuestion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.lease(t, 3*sm.Second)
	notes := filepath.Join(t.TempDir(), "ledger")
	s.open(t, s.script(t, "p", ledger), input(notes))
	proxy, st := s.behindProxy(t)
	w := s.startOn(t, st)
	awaitFile(t, notes)
	slow := make(chan struct{})
	var once sync.Once
	proxy.DropReply(func(args []string) bool {
		if slices.Contains(args, s.Key("follow")) { // a heartbeat
			once.Do(func() {
				timer := time.NewTimer(800 * time.Millisecond)
				defer timer.Stop()
				<-timer.C
				close(slow)
			})
		}
		return false
	})
	wait.Closed(t, patience, slow, "there is no heartbeat")
	proxy.Hang() // it was the last one
	defer proxy.Release()
	wait.Eventually(t, patience, func() bool { return s.takeBackLost(t) == 1 }, "the worker is never lost")
	before := len(lines(t, notes))
	wait.Never(t, 500*time.Millisecond, func() bool { return len(lines(t, notes)) != before },
		"the program runs although its task was taken back")
	w.log.await(t, "could not renew the lease in time")
}
