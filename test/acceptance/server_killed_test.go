package acceptance

import (
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A single server is killed: what is reported meanwhile is settled within a
// second of the start of the next one.
func TestServerRestarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "settle=server")
	server, _, _ := w.all(t)
	spec := w.script(t, "p", "echo done")
	w.archived(t, w.open(t, spec)[0], sm.Succeeded)
	w.kill(t, server)
	ids := w.open(t, times(20, spec)...)
	for _, id := range ids {
		w.await(t, id, sm.Executed)
	}
	began := w.redisNow(t)
	w.server(t)
	last := began
	for _, id := range ids {
		last = max(last, storetest.Stamps(w.archived(t, id, sm.Succeeded), 0)["succeeded"])
	}
	within(t, "from the start of the server to the last task settled", began, last, sm.Second)
}

// A success needs no server: its worker settles it, and a manager archives it. A failure waits for one.
func TestSuccessNeedsNoServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server, _, _ := w.all(t)
	good, bad := w.script(t, "good", "echo done"), w.script(t, "bad", "exit 3")
	w.archived(t, w.open(t, good)[0], sm.Succeeded) // it is fetched, which its task is told
	w.kill(t, server)
	fails := w.open(t, bad)[0]
	for _, id := range w.open(t, times(20, good)...) {
		w.archived(t, id, sm.Succeeded)
	}
	if got := w.await(t, fails, sm.Executed); got.State != sm.Executed {
		t.Errorf("without a server the failure is %s", got.State)
	}
	w.server(t)
	w.archived(t, fails, sm.Failed)
}

// One of two servers is killed while tasks come in: the other one settles them as
// if nothing had happened.
func TestOneOfTwoServersKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "settle=server")
	first, _, _ := w.all(t)
	w.launch(t, "server-2", "tdf-server", "server-2", w.cfg)
	spec := w.script(t, "p", "sleep 0.02")
	w.archived(t, w.open(t, spec)[0], sm.Succeeded)
	var ids []int64
	for i := range 30 {
		if i == 10 {
			w.kill(t, first)
		}
		ids = append(ids, w.open(t, []task.Spec{spec}...)...)
	}
	for _, id := range ids { // a wake-up that the dead one took is made up for by the poll
		stamps := storetest.Stamps(w.archived(t, id, sm.Succeeded), 0)
		within(t, "settling", stamps["executed"], stamps["succeeded"], sm.Second)
	}
}
