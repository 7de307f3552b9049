package manager

import "time"

// handful is how many tasks are read with their outputs, handled before they are archived, and kept from other managers
// meanwhile. It is small where handlers take their time or outputs are large. It doubles each time that all of it took
// hardly longer than the calls to Redis, which cost the same for few tasks.
type handful struct{ more int }

const (
	readAtOnce = 16
	mostAtOnce = 64
	// shortTime is within what a handful is done if handlers do little.
	shortTime = 20 * time.Millisecond
)

func (h *handful) size() int { return max(readAtOnce, h.more) }

// took hears how long n tasks took. From fewer than a handful nothing is learned but that they took too long.
func (h *handful) took(n int, d time.Duration) {
	switch {
	case d > shortTime:
		h.more = readAtOnce
	case n >= h.size():
		h.more = min(2*n, mostAtOnce)
	}
}
