package acceptance

import (
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// countLines counts the lines of a text that contain part.
func countLines(text, part string) int {
	n := 0
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// A6, A7: a worker is frozen for three leases. Its programs are dead before the
// task is opened again and run elsewhere; when it goes on, nothing of its round
// is recorded, it registers again, and works.
func TestFrozenForThreeLeases(t *testing.T) {
	t.Parallel()
	for _, layer := range containments {
		for _, running := range []bool{false, true} {
			name := map[bool]string{false: "A6 all is over", true: "A7 the second round runs"}[running]
			t.Run(layer+"/"+name, func(t *testing.T) {
				t.Parallel()
				f := &freezing{world: newWorld(t)}
				f.freeze(t, layer)
				if running {
					f.thaw(t)
					f.finish(t)
				} else {
					f.finish(t)
					f.thaw(t)
				}
				f.worksAgain(t)
			})
		}
	}
}

// freezing is a task whose first worker is frozen and whose second is not.
type freezing struct {
	*world
	server, frozen, other *daemon
	id                    int64
	ledger                ledger
	before                int64 // incarnation of the frozen worker
}

// freeze gets the task to its second round.
func (f *freezing) freeze(t *testing.T, layer string) {
	t.Helper()
	f.server = f.leasing(t)
	spec, l := f.beating(t)
	f.ledger = l
	f.id = f.open(t, spec)[0]
	f.frozen = f.worker(t, "frozen", "containment="+layer)
	l.begun(t, 0, 1)
	f.before = f.info(t, "frozen").Incarnation
	f.other = f.worker(t, "other")
	at := f.redisNow(t)
	f.frozen.Signal(t, syscall.SIGSTOP)
	within(t, "from the freezing to the second round", at, f.reopened(t, f.id), shortLease+2*sm.Second)
	f.noneLeft(t, "frozen")
	l.begun(t, 1, 1)
	f.passed(t, at, 3*shortLease)
}

// finish lets the second round come to its end.
func (f *freezing) finish(t *testing.T) {
	t.Helper()
	f.ledger.release(t, f.id)
	f.lostOnce(t, f.id, "frozen", "other")
	f.ledger.noOverlap(t)
}

// thaw lets the first worker go on: it changes nothing of the task, says why, and
// registers again.
func (f *freezing) thaw(t *testing.T) {
	t.Helper()
	before := f.hash(t, f.id)
	f.frozen.Signal(t, syscall.SIGCONT)
	f.frozen.Says(t, "lost the lease: stopping all programs and registering again")
	f.frozen.Says(t, fmt.Sprintf("could not hand back task %d", f.id))
	wait.Eventually(t, patience, func() bool { return f.info(t, "frozen").Incarnation > f.before },
		"the worker that was frozen does not register again")
	if after := f.hash(t, f.id); !maps.Equal(before, after) {
		t.Errorf("the worker that was frozen changed the task:\n%v\n%v", before, after)
	}
}

func (f *freezing) worksAgain(t *testing.T) {
	t.Helper()
	f.leave(t, f.other)
	id := f.open(t, f.script(t, "p", "echo again"))[0]
	checkFields(t, f.archived(t, id, sm.Succeeded), map[string]string{"0:worker": "frozen", "round": "0", "0:output": "again\n"})
	if f.server.Ended() {
		t.Error("the server has ended")
	}
	f.sound(t)
}
