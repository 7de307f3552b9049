package series

import (
	"slices"
	"time"
)

// verdict is what is to be done about a series.
type verdict struct {
	// After is the series as it is then.
	After *Series
	// Open are the occurrences that begin, in order; Cancel are tasks to be cancelled, so that one may begin.
	Open   []occurrence
	Cancel []int64
	// Due is when to look again; zero: when a task of it ends.
	Due time.Time
}

// Bounds of a step, and when to look again although nothing is due: a task of which nothing is heard may be gone.
const (
	mostAtOnce  = 100
	whileWaits  = time.Minute
	whileRuns   = 10 * time.Minute
	lateByMiss  = time.Minute // what MissedSkip lets through
	cancelAgain = 10 * time.Second
)

// decide says what is to be done about a series at a time of Redis. ended has the tasks that have ended or are not there any more, and when
// their programs want the next occurrence, zero if they did not say. It is pure: who decides does not matter. epoch is that of the data.
func (s *Series) decide(ended map[int64]time.Time, now time.Time, epoch int64) (verdict, error) {
	clock, err := s.schedule(s.Created)
	if err != nil {
		return verdict{}, err
	}
	after := *s
	after.Live, after.History, after.Error = slices.Clone(s.Live), slices.Clone(s.History), ""
	d := decision{verdict: verdict{After: &after}, s: &after, clock: clock, now: now, epoch: epoch}
	d.settle(ended)
	if !after.Paused && (!after.ETA || len(after.Live) == 0) {
		d.begin()
	}
	d.look()
	return d.verdict, nil
}

type decision struct {
	verdict

	s     *Series
	clock schedule // nil for none
	now   time.Time
	epoch int64
}

// settle takes out the tasks that have ended. The program of the last one says when the series is due next.
func (d *decision) settle(ended map[int64]time.Time) {
	s, were := d.s, len(d.s.Live)
	var said time.Time
	s.Live = slices.DeleteFunc(s.Live, func(id int64) bool {
		eta, is := ended[id]
		if !eta.IsZero() {
			said = eta
		}
		return is
	})
	if !s.ETA || were == 0 || len(s.Live) > 0 {
		return
	}
	if said.IsZero() {
		said = s.Fallback
	}
	s.Next, s.Fallback = said, time.Time{}
	if said.IsZero() && d.clock != nil {
		s.Next = d.clock.next(s.Last)
	}
	d.bound()
}

// bound ends the series behind its end.
func (d *decision) bound() {
	if s := d.s; !s.End.IsZero() && s.Next.After(s.End) {
		s.Next = time.Time{}
	}
}

// begins is when the occurrence of a time begins.
func (d *decision) begins(at time.Time) time.Time { return at.Add(d.s.delay(at)) }

func (d *decision) isDue() bool { return !d.s.Next.IsZero() && !d.begins(d.s.Next).After(d.now) }

// after is the time that follows one.
func (d *decision) after(at time.Time) time.Time {
	if d.clock == nil {
		return time.Time{}
	}
	return d.clock.next(at)
}

// begin begins what is due, or leaves it out.
func (d *decision) begin() {
	for len(d.Open) < mostAtOnce && d.isDue() && !d.s.Waits {
		d.drop()
		if !d.isDue() {
			return
		}
		d.one()
	}
	if d.s.Waits && d.isDue() {
		d.drop()
		d.one()
	}
}

// drop leaves out what was missed, as far as it is not to begin any more: Next is the first one that is.
func (d *decision) drop() {
	s := d.s
	if d.clock == nil {
		return
	}
	keep := s.Next // the first that stays
	if s.Missed != MissedAll {
		keep = d.newest()
	}
	if most := d.mostBehind(); most > 0 && d.now.Sub(d.begins(keep)) > most {
		keep = d.notBefore(keep, d.now.Add(-most))
	}
	if keep.Equal(s.Next) {
		return
	}
	what := passed
	if s.Waits {
		what = skipped
	}
	s.note(Entry{What: what, At: s.Next, Before: keep})
	s.Next = keep
	d.bound()
}

// mostBehind is how late an occurrence may begin, 0 for any time. One that waits is not missed.
func (d *decision) mostBehind() time.Duration {
	most := time.Duration(d.s.MaxBehind)
	if most == 0 && d.s.Missed == MissedSkip && !d.s.Waits {
		most = lateByMiss
	}
	return most
}

// newest is the last of those that are due; the next one if that is the only one.
func (d *decision) newest() time.Time {
	s := d.s
	end := d.now.Add(-time.Duration(s.Jitter)) // each that is due by then has begun, whatever its delay
	if !s.End.IsZero() && s.End.Before(end) {
		end = s.End
	}
	found := s.Next
	if last := d.clock.last(s.Next, end); last.After(found) {
		found = last
	}
	for at := d.clock.next(found); d.may(at) && !d.begins(at).After(d.now); at = d.clock.next(at) {
		found = at
	}
	return found
}

// may reports whether an occurrence is within the end.
func (d *decision) may(at time.Time) bool {
	return !at.IsZero() && (d.s.End.IsZero() || !at.After(d.s.End))
}

// notBefore is the first from at on that begins at a time or later.
func (d *decision) notBefore(at, from time.Time) time.Time {
	if early := d.clock.next(from.Add(-time.Duration(d.s.Jitter) - time.Microsecond)); early.After(at) {
		at = early
	}
	for !at.IsZero() && d.begins(at).Before(from) {
		at = d.clock.next(at)
	}
	return at
}

// one begins the next occurrence, leaves it out, or lets it wait.
func (d *decision) one() {
	s, at := d.s, d.s.Next
	busy := len(s.Live) > 0 || len(d.Open) > 0 && s.Overlap != OverlapAllow
	if busy && s.Overlap != OverlapAllow {
		if s.Overlap != OverlapSkip {
			s.Waits = true
			if s.Overlap == OverlapReplace {
				d.Cancel = slices.Clone(s.Live)
			}
			return
		}
		if d.clock != nil {
			at = d.newest() // the others that are due would be left out likewise
		}
		due := s.Next
		s.Next = d.after(at)
		s.note(Entry{What: skipped, At: due, Before: s.Next})
		d.bound()
		return
	}
	s.Waits = false
	d.open(fired, at)
	if s.Next = d.after(at); s.ETA {
		s.Next = time.Time{} // its program says
	}
	d.bound()
}

// open begins an occurrence.
func (d *decision) open(what string, at time.Time) {
	s := d.s
	s.Number++
	s.Last = at
	d.Open = append(d.Open, occurrence{Number: s.Number, At: at})
	s.note(Entry{What: what, At: at, Number: s.Number, Begun: d.now, Epoch: d.epoch})
}

// look says when to look again.
func (d *decision) look() {
	s := d.s
	runs := s.ETA && len(s.Live)+len(d.Open) > 0
	switch {
	case s.Paused:
	case runs:
		d.Due = d.now.Add(whileRuns)
	case s.Waits && s.Overlap == OverlapReplace:
		d.Due = d.now.Add(cancelAgain)
	case s.Waits:
		d.Due = d.now.Add(whileWaits)
	case !s.Next.IsZero():
		d.Due = d.begins(s.Next)
	}
}

// watched reports whether the series has to hear when its tasks end.
func (s *Series) watched() bool {
	return s.ETA || s.Overlap == OverlapQueue || s.Overlap == OverlapReplace
}
