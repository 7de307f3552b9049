package acceptance

import (
	"os/exec"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
)

// Two sites of one host have workers of the same name, in namespaces of the same
// name, with Redis at the same address: each of its own network. Neither takes the
// programs of the other, or their directories, for left over.
func TestSitesOfOneHost(t *testing.T) {
	t.Parallel()
	for _, layer := range containments {
		t.Run(layer, func(t *testing.T) {
			t.Parallel()
			const port = 6379
			group := delegate(t, 0)
			first := worldOn(t, storetest.New(t))
			other := worldOn(t, storetest.Named(t, redistest.Start(t), first.Namespace))
			set := []string{"containment=" + layer, "temp_dir=" + first.private}
			if layer == "cgroup" {
				set = append(set, "cgroup="+group.dir)
			}
			begin := func(w *world) (int64, *daemon, ledger) {
				command := w.farCommand(t, newWire(t), port, "w", set...)
				group.hold(command)
				spec := w.script(t, "p", beats+`; echo yes >"$TDF_WORKDIR/there"`)
				l := ledger{w.file(t, "ledger", "", 0o666)}
				spec.Input = l.path
				id := w.open(t, spec)[0]
				d := w.start(t, command)
				l.begun(t, 0, 1)
				return id, d, l
			}
			id, d, l := begin(first)
			before := first.info(t, "w").Incarnation
			otherID, otherD, otherL := begin(other)
			// What a worker leaves is not taken for the other's either.
			first.killAtOnce(t, d)
			again := first.start(t, again(d.Cmd))
			again.Says(t, "took back a task of an earlier incarnation")
			l.begun(t, 1, 1)
			for _, w := range []*world{first, other} {
				w.archiver(t)
				w.server(t)
			}
			l.release(t)
			otherL.release(t)
			checkFields(t, first.archived(t, id, sm.Succeeded), map[string]string{"losses": "1", "round": "1"})
			checkFields(t, other.archived(t, otherID, sm.Succeeded), map[string]string{"losses": "-", "round": "0"})
			if got := first.info(t, "w").Incarnation; got == before || otherD.Ended() {
				t.Errorf("incarnation %d as before, or the other worker has ended: %v", got, otherD.Ended())
			}
		})
	}
}

// again is a command to be started once more.
func again(cmd *exec.Cmd) *exec.Cmd {
	more := exec.Command(cmd.Args[0], cmd.Args[1:]...)
	more.Dir, more.SysProcAttr = cmd.Dir, cmd.SysProcAttr
	return more
}
