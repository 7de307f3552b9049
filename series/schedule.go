package series

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // all servers must know the same zones

	"github.com/robfig/cron/v3"

	"github.com/tdf-go/tdf/statemachine"
)

// schedule says when a series is due, as far as that does not depend on its program.
type schedule interface {
	// next is the first time after t; the zero time for none.
	next(t time.Time) time.Time
	// last is the last time that is not after t, if there is one that is not before from; else the zero time.
	last(from, t time.Time) time.Time
}

// interval is due each so often, counted from a moment.
type interval struct {
	from  time.Time
	every time.Duration
}

func (i interval) next(t time.Time) time.Time {
	if t.Before(i.from) {
		return i.from
	}
	return t.Add(i.every - t.Sub(i.from)%i.every)
}

func (i interval) last(from, t time.Time) time.Time {
	if t.Before(i.from) {
		return time.Time{}
	}
	if at := t.Add(-(t.Sub(i.from) % i.every)); !at.Before(from) {
		return at
	}
	return time.Time{}
}

// calendar is a cron expression on the clocks of a zone. A time that the clocks skip is due when they go on; two such times are one. A
// time that they show twice is due the first time, and if the expression leaves the hour open (*), both times.
type calendar struct {
	spec     *cron.SpecSchedule // on clocks that are never put forward or back
	zone     *time.Location
	anyHours bool
}

// parser reads five fields, or @daily and its like.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func newCalendar(text, zone string) (*calendar, error) {
	bad := &statemachine.FieldError{Field: "cron", Value: text, Want: "five fields such as 30 4 * * 1-5, or @daily"}
	if strings.Contains(text, "TZ=") {
		bad.Want = "a cron expression without a zone; give that as zone"
		return nil, bad
	}
	parsed, err := parser.Parse(text)
	spec, plain := parsed.(*cron.SpecSchedule)
	switch {
	case err != nil:
		bad.Want += fmt.Sprintf(" (%v)", err)
		return nil, bad
	case !plain:
		bad.Want = "a cron expression; give an interval as every"
		return nil, bad
	}
	in, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, &statemachine.FieldError{Field: "zone", Value: zone, Want: "a time zone such as Europe/Berlin or UTC"}
	}
	spec.Location = time.UTC
	const hours = 1<<24 - 1
	c := &calendar{spec: spec, zone: in, anyHours: spec.Hour&hours == hours}
	if c.next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		bad.Want = "a time that comes"
		return nil, bad
	}
	return c, nil
}

// shown is what the clocks of the zone show at a moment, as if it were UTC.
func (c *calendar) shown(t time.Time) time.Time {
	_, offset := t.In(c.zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// first is the first moment at which the clocks show wall, or the moment at which they skip it.
func (c *calendar) first(wall time.Time) time.Time {
	near := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, c.zone)
	begins, ends := near.ZoneBounds()
	found := time.Time{}
	for _, in := range []time.Time{begins.Add(-time.Second), near, ends} {
		if _, offset := in.In(c.zone).Zone(); !in.IsZero() {
			at := wall.Add(-time.Duration(offset) * time.Second)
			if c.shown(at).Equal(wall) && (found.IsZero() || at.Before(found)) {
				found = at
			}
		}
	}
	if !found.IsZero() {
		return found
	}
	if !begins.IsZero() && c.shown(begins).After(wall) && !c.shown(begins.Add(-time.Second)).After(wall) {
		return begins.UTC()
	}
	return ends.UTC()
}

func (c *calendar) next(t time.Time) time.Time {
	for wall := c.spec.Next(c.shown(t)); !wall.IsZero(); wall = c.spec.Next(wall) {
		at := c.first(wall)
		if !at.After(t) {
			continue
		}
		if again := c.again(t, at); c.anyHours && !again.IsZero() {
			return again
		}
		return at
	}
	if c.anyHours {
		return c.again(t, t.AddDate(1, 0, 0))
	}
	return time.Time{}
}

// again is the first moment between two that the clocks show a second time, because they were put back.
func (c *calendar) again(after, before time.Time) time.Time {
	begins, ends := after.In(c.zone).ZoneBounds()
	for _, back := range []time.Time{begins, ends} {
		if back.IsZero() || !back.Before(before) {
			continue
		}
		was, is := c.shown(back.Add(-time.Second)).Add(time.Second), c.shown(back)
		from := is
		if after.After(back) || after.Equal(back) {
			from = c.shown(after).Add(time.Second)
		}
		wall := c.spec.Next(from.Add(-time.Second))
		if at := back.Add(wall.Sub(is)).UTC(); !wall.IsZero() && wall.Before(was) && at.Before(before) && at.After(after) {
			return at
		}
	}
	return time.Time{}
}

func (c *calendar) last(from, t time.Time) time.Time {
	for back := time.Minute; ; back *= 2 {
		begin := t.Add(-back)
		if begin.Before(from) {
			begin = from.Add(-time.Microsecond)
		}
		if at := c.next(begin); !at.IsZero() && !at.After(t) {
			for further := c.next(at); !further.IsZero() && !further.After(t); further = c.next(at) {
				at = further
			}
			return at
		}
		if begin.Before(from) {
			return time.Time{}
		}
	}
}
