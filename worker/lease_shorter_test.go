package worker

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// The lease is made shorter than the pause between two heartbeats while a program
// runs: the worker renews it in time from the moment that it knows.
func TestLeaseIsMadeShorter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.lease(t, 60*sm.Second)
	started, release := twoFiles(t)
	id := s.open(t, s.script(t, "p", waiting), input(started+" "+release))
	w := s.start(t)
	awaitFile(t, started)
	const short = 3 * time.Second
	s.lease(t, sm.Duration(short/time.Microsecond))
	w.signalChange()
	wait.Never(t, short+500*time.Millisecond, func() bool { return w.log.count("could not renew the lease") > 0 }, "the lease is lost")
	touch(t, release)
	checkFields(t, s.await(t, id, sm.Executed), map[string]string{"round": "0", "0:output": "done 0\n"})
}
