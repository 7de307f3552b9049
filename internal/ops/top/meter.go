package top

import (
	"slices"
	"time"
)

// window is what the short rates are taken over.
const window = time.Minute

// reading is the value of a counter at a moment.
type reading struct {
	at time.Time
	n  int64
}

// rate is in events per second; it is known once two readings differ in time.
type rate struct {
	perSecond float64
	known     bool
}

// meter turns readings of a counter into rates.
type meter struct {
	first  reading
	recent []reading // oldest first
}

// add takes a reading. A counter that fell counts something new (its Redis was
// replaced), and a clock that went back cannot be reckoned with: either starts
// the meter afresh.
func (m *meter) add(r reading) {
	if n := len(m.recent); n > 0 && (r.n < m.recent[n-1].n || r.at.Before(m.recent[n-1].at)) {
		m.recent = nil
	}
	if len(m.recent) == 0 {
		m.first = r
	}
	m.recent = append(m.recent, r)
	// Two readings stay, however far apart: an interval above the window still has a rate.
	old := 0
	for old < len(m.recent)-2 && r.at.Sub(m.recent[old].at) > window {
		old++
	}
	m.recent = slices.Delete(m.recent, 0, old)
}

// short is the rate over the last minute, or between the last two readings if
// they are further apart.
func (m *meter) short() rate {
	if len(m.recent) == 0 {
		return rate{}
	}
	return between(m.recent[0], m.recent[len(m.recent)-1])
}

// long is the rate since the first reading.
func (m *meter) long() rate {
	if len(m.recent) == 0 {
		return rate{}
	}
	return between(m.first, m.recent[len(m.recent)-1])
}

func between(a, b reading) rate {
	seconds := b.at.Sub(a.at).Seconds()
	if seconds <= 0 {
		return rate{}
	}
	return rate{perSecond: float64(b.n-a.n) / seconds, known: true}
}

// meters are those of all counters of a snapshot.
type meters struct {
	done, failed meter
	queues       map[string]*meter
}

// add reads the counters of a snapshot that came at a moment. Queues that are
// no more are forgotten.
func (m *meters) add(s Snapshot, at time.Time) {
	m.done.add(reading{at, s.Done})
	m.failed.add(reading{at, s.Failed})
	queues := make(map[string]*meter, len(s.Queues))
	for i := range s.Queues {
		q := &s.Queues[i]
		known := m.queues[q.Name]
		if known == nil {
			known = &meter{}
		}
		done := q.Retried
		for _, n := range q.Ended {
			done += n
		}
		known.add(reading{at, done})
		queues[q.Name] = known
	}
	m.queues = queues
}

// queue is the short rate of a queue.
func (m *meters) queue(name string) rate {
	if known := m.queues[name]; known != nil {
		return known.short()
	}
	return rate{}
}
