package manager

import (
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
)

// book remembers tasks whose handler returned an error, and those whose handler
// is done while the archiving did not work out.
type book struct {
	base, limit time.Duration
	entries     map[int64]*entry
}

type entry struct {
	attempts int
	next     time.Time
	err      error
	// handled is the revision the handler has dealt with, or -1.
	handled int64
	// pass is the last one that met the task.
	pass int
}

// shortestBackoff keeps a manager with handler_backoff = 0 from spinning.
const shortestBackoff = 10 * time.Millisecond

func newBook(c config.Manager) *book {
	base := max(c.HandlerBackoff, shortestBackoff)
	return &book{base: base, limit: max(c.HandlerBackoffMax, base), entries: map[int64]*entry{}}
}

// entry returns the one of a task and makes it if there is none.
func (b *book) entry(id int64) *entry {
	e, ok := b.entries[id]
	if !ok {
		e = &entry{handled: -1}
		b.entries[id] = e
	}
	return e
}

// waits reports whether the task must be left alone for now.
func (b *book) waits(id int64, now time.Time, pass int) bool {
	e, ok := b.entries[id]
	if !ok {
		return false
	}
	e.pass = pass
	return now.Before(e.next)
}

// handledBefore reports whether the handler has dealt with this revision, or
// with the one before, and only this manager's new lease has raised it since.
func (b *book) handledBefore(id, rev int64) bool {
	e, ok := b.entries[id]
	return ok && e.handled >= 0 && (e.handled == rev || e.handled == rev-1)
}

// fail notes an error of the handler and returns the pause before the next call.
func (b *book) fail(id int64, err error, now time.Time, pass int) (attempts int, pause time.Duration) {
	e := b.entry(id)
	pause = b.base
	for range e.attempts {
		if pause = 2 * pause; pause >= b.limit {
			pause = b.limit
			break
		}
	}
	e.attempts++
	e.err, e.pass, e.next = err, pass, now.Add(pause)
	return e.attempts, pause
}

// forget drops what the last complete pass did not meet any more.
func (b *book) forget(pass int) {
	for id, e := range b.entries {
		if e.pass != pass {
			delete(b.entries, id)
		}
	}
}

// next is when the first task may be handled again; zero if none waits.
func (b *book) next() time.Time {
	var first time.Time
	for _, e := range b.entries {
		if !e.next.IsZero() && (first.IsZero() || e.next.Before(first)) {
			first = e.next
		}
	}
	return first
}
