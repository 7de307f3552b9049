package chaos

import (
	"os"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
)

// placeCards are the faults of the places that there are.
func (tr *trial) placeCards() []card {
	var cards []card
	if tr.places.disk != "" {
		cards = append(cards, card{diskFull, tr.fillDisk})
	}
	if tr.places.wire != nil {
		cards = append(cards, card{networkCut, tr.cutWire})
	}
	return cards
}

// hitPlace excuses the member for a fault of its place; it is false if that has
// one already.
func (tr *trial) hitPlace(name string, d time.Duration) (*member, bool) {
	m := tr.fleet.named(name)
	if time.Now().Before(m.cut.Add(-afterTrouble)) {
		return m, false
	}
	m.hits++
	m.cut = time.Now().Add(d + afterTrouble)
	return m, true
}

// fillDisk leaves a worker no room for programs, results and private directories.
func (tr *trial) fillDisk(t *testing.T) bool {
	t.Helper()
	d := tr.absence(longest)
	if _, ok := tr.hitPlace(diskWorker, d); !ok {
		return false
	}
	filler := hosttest.FillDisk(t, tr.places.disk)
	tr.later(d, func(t *testing.T) {
		t.Helper()
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		tr.watch.await(diskFull, unhindered(diskWorker))
	})
	return true
}

// cutWire cuts a worker's host off.
func (tr *trial) cutWire(t *testing.T) bool {
	t.Helper()
	d := tr.absence(longest)
	if _, ok := tr.hitPlace(wireWorker, d); !ok {
		return false
	}
	if err := tr.places.wire.Cut(); err != nil {
		t.Fatal(err)
	}
	tr.later(d, func(t *testing.T) {
		t.Helper()
		if err := tr.places.wire.Mend(); err != nil {
			t.Fatal(err)
		}
		tr.watch.await(networkCut, heard(wireWorker))
	})
	return true
}
