package chaos

import (
	"slices"
	"testing"
	"time"
)

// memberCards are the faults of single programs. Servers are spared mostly: they
// judge nobody before they have lived for a lease.
func (tr *trial) memberCards() []card {
	kill := func(as role, c class) card {
		return card{c, func(t *testing.T) bool { t.Helper(); return tr.kill(t, as, c) }}
	}
	freeze := func(as role, c class) card {
		return card{c, func(t *testing.T) bool { t.Helper(); return tr.freeze(t, as, c) }}
	}
	gone := func(as role, c class) card {
		return card{c, func(t *testing.T) bool { t.Helper(); return tr.lose(t, as, c) }}
	}
	return slices.Concat(
		slices.Repeat([]card{kill(worker, workerKill)}, 6), slices.Repeat([]card{gone(worker, workerGone)}, 2),
		[]card{kill(foreign, foreignKill), gone(foreign, foreignGone)},
		slices.Repeat([]card{freeze(worker, workerFreeze)}, 2),
		[]card{kill(server, serverKill), freeze(server, serverFreeze)},
		slices.Repeat([]card{kill(manager, managerKill)}, 2), []card{freeze(manager, managerFreeze)},
	)
}

// pick chooses one of the members that run, nil if none does. Of workers over HTTP, which are many and seldom hit, it takes one that
// was hit least.
func (tr *trial) pick(as role) *member {
	there := slices.DeleteFunc(tr.fleet.of(as), func(m *member) bool { return !m.alive() })
	if len(there) == 0 {
		return nil
	}
	m := there[tr.rnd.IntN(len(there))]
	if as == foreign {
		m = slices.MinFunc(there, func(a, b *member) int { return a.hits - b.hits })
	}
	m.hits++
	return m
}

// kill kills a member and starts it again at once.
func (tr *trial) kill(t *testing.T, as role, c class) bool {
	t.Helper()
	m := tr.pick(as)
	if m == nil {
		return false
	}
	tr.awaitAfter(t, m, c)
	m.kill()
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	return true
}

// lose kills a worker that comes back after a while only.
func (tr *trial) lose(t *testing.T, as role, c class) bool {
	t.Helper()
	m := tr.pick(as)
	if m == nil {
		return false
	}
	tr.awaitAfter(t, m, c)
	m.lose(tr.absence(longest), nil)
	return true
}

// awaitAfter watches how long a fault of a program is felt: of a worker, until the
// rounds it had are over; of a server or manager, until others, or its successor,
// have done a part of its work.
func (tr *trial) awaitAfter(t *testing.T, m *member, c class) {
	t.Helper()
	switch m.role {
	case worker, foreign:
		tr.watch.await(c, tr.watch.freed(t.Context(), m.name))
	case server:
		tr.watch.await(c, servedMore())
	case manager:
		tr.watch.await(c, archivedMore())
	}
}

// freeze stops a member for a while. What counts of a worker is when it is heard
// of again after that; the others have fellows that are to go on meanwhile.
func (tr *trial) freeze(t *testing.T, as role, c class) bool {
	t.Helper()
	m := tr.pick(as)
	if m == nil {
		return false
	}
	var restored func()
	if as == worker {
		restored = func() { tr.watch.await(c, heard(m.name)) }
	} else {
		tr.awaitAfter(t, m, c)
	}
	if err := m.freeze(max(tr.absence(longest), 50*time.Millisecond), restored); err != nil {
		t.Fatal(err)
	}
	return true
}
