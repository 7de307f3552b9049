package series

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// ErrExists means that there is a series of that key already.
var ErrExists = errors.New("the series exists")

// Get returns the series of a key. The error matches [task.ErrNoRecord] if there is no such series.
func Get(ctx context.Context, m *manager.Manager, key string) (*Series, error) {
	r, err := m.Record(ctx, task.KindSeries, key)
	if err != nil {
		return nil, err
	}
	return parse(&r)
}

// List reads the series in the order of their keys, from the one that follows after. An error ends it.
func List(ctx context.Context, m *manager.Manager, after string) iter.Seq2[*Series, error] {
	return func(yield func(*Series, error) bool) {
		for r, err := range m.Records(ctx, task.KindSeries, after) {
			var s *Series
			if err == nil {
				s, err = parse(&r)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// Add makes a series and returns it. The error matches [ErrExists] if there is one of that key, or is a
// *statemachine.FieldError about the definition, or about its task.
func Add(ctx context.Context, m *manager.Manager, d Definition, o manager.ChangeOptions) (*Series, error) {
	now, err := check(ctx, m, &d)
	if err != nil {
		return nil, err
	}
	s := &Series{Definition: d, Created: now.Truncate(time.Second)}
	if err := s.begin(now); err != nil {
		return nil, err
	}
	_, err = m.Record(ctx, task.KindSeries, d.Key)
	if err == nil {
		return nil, fmt.Errorf("series %q: %w; set changes it", d.Key, ErrExists)
	}
	if o.DryRun || !errors.Is(err, task.ErrNoRecord) {
		if errors.Is(err, task.ErrNoRecord) {
			err = nil
		}
		return s, err
	}
	s.Modified = now
	err = m.Logged(ctx, "series add", "", o, func(ctx context.Context) error {
		_, err := m.WriteRecord(ctx, s.record(task.Record{Kind: task.KindSeries, Name: d.Key}), manager.RecordTasks{})
		return err
	})
	if errors.Is(err, task.ErrRecordChanged) {
		err = fmt.Errorf("series %q: %w; set changes it", d.Key, ErrExists)
	}
	return s, err
}

// check looks at a definition, and at the task as the namespace would have it.
func check(ctx context.Context, m *manager.Manager, d *Definition) (now time.Time, err error) {
	if err := d.complete(); err != nil {
		return now, err
	}
	if now, _, err = clockOf(ctx, m); err != nil {
		return now, err
	}
	spec, err := d.spec(occurrence{Number: 1, At: now})
	if err == nil {
		err = m.Check(spec)
	}
	if err == nil && spec.Queue != "" {
		_, err = m.Queue(ctx, spec.Queue)
	}
	return now, err
}

// clockOf is TIME of Redis, by which the runners go, and the epoch of the data.
func clockOf(ctx context.Context, m *manager.Manager) (now time.Time, epoch int64, err error) {
	p, err := m.PendingRecords(ctx, task.KindSeries, 1)
	return p.Now, p.Epoch, err
}

// begin says when the series is due first, from a moment on.
func (s *Series) begin(now time.Time) error {
	clock, err := s.schedule(s.Created)
	if err != nil {
		return err
	}
	from := now
	if s.Start.After(now) || !s.Start.IsZero() && s.Missed == MissedAll {
		from = s.Start.Add(-time.Microsecond)
	}
	switch {
	case clock != nil:
		s.Next = clock.next(from)
	case s.Start.After(now), !s.Start.IsZero() && s.Missed == MissedAll:
		s.Next = s.Start
	default: // its program says the times after that
		s.Next = now
	}
	if !s.End.IsZero() && s.Next.After(s.End) {
		s.Next = time.Time{}
	}
	s.Next = s.Next.UTC()
	return nil
}

// record is the record with the series in it, due when the next occurrence begins.
func (s *Series) record(r task.Record) task.Record {
	r.Value, r.Due = s.text(), time.Time{}
	if !s.Paused && !s.Next.IsZero() {
		r.Due = s.Next.Add(s.delay(s.Next))
	}
	if s.Waits || s.ETA && (len(s.Live) > 0 || s.Next.IsZero() && s.Number > 0) { // a runner finds out when to look again
		r.Due = s.Created
	}
	return r
}

// changeTries is how often a series that others change meanwhile is read again.
const changeTries = 50

// edit applies a change to a series, again if others change it meanwhile. verb is what the log of changes calls it.
func edit(
	ctx context.Context, m *manager.Manager, verb, key string, o manager.ChangeOptions, change func(s *Series) ([]task.Spec, error),
) (s *Series, err error) {
	err = m.Logged(ctx, "series "+verb, "", o, func(ctx context.Context) error {
		s, err = editUnlogged(ctx, m, key, o, change)
		return err
	})
	return s, err
}

func editUnlogged(
	ctx context.Context, m *manager.Manager, key string, o manager.ChangeOptions, change func(s *Series) ([]task.Spec, error),
) (*Series, error) {
	for try := 1; ; try++ {
		r, err := m.Record(ctx, task.KindSeries, key)
		if err != nil {
			return nil, err
		}
		s, err := parse(&r)
		if err != nil {
			return nil, err
		}
		specs, err := change(s)
		if err != nil || o.DryRun {
			return s, err
		}
		if s.Modified, _, err = clockOf(ctx, m); err != nil {
			return s, err
		}
		written, err := m.WriteRecord(ctx, s.record(r), manager.RecordTasks{Specs: specs, Watched: s.watched()})
		switch {
		case err == nil:
			return parse(&written)
		case !errors.Is(err, task.ErrRecordChanged) || try == changeTries:
			return s, err
		}
	}
}

// Set applies change to the definition of a series, and returns the series as it is then. The Key cannot be changed. Another Cron, Zone,
// Every, ETA or Start makes it due anew, from now on. With an error nothing changes.
func Set(ctx context.Context, m *manager.Manager, key string, change func(*Definition) error, o manager.ChangeOptions) (*Series, error) {
	return edit(ctx, m, "set", key, o, func(s *Series) ([]task.Spec, error) {
		before := s.Definition
		if err := change(&s.Definition); err != nil {
			return nil, err
		}
		s.Key = key
		now, err := check(ctx, m, &s.Definition)
		if err != nil {
			return nil, err
		}
		is, was := s.Definition, before
		same := is.Cron == was.Cron && is.Zone == was.Zone && is.Every == was.Every && is.ETA == was.ETA && is.Start.Equal(was.Start)
		if same && is.End.Equal(was.End) || s.ETA && len(s.Live) > 0 {
			return nil, nil
		}
		if same && !s.Next.IsZero() && (s.End.IsZero() || !s.Next.After(s.End)) {
			return nil, nil
		}
		s.Waits = false
		return nil, s.begin(now)
	})
}

// Edit applies change to a series, also to when it is due, and returns the series as it is then. It is called again if others change the
// series meanwhile. The Key cannot be changed. With an error nothing changes.
func Edit(ctx context.Context, m *manager.Manager, key string, change func(*Series) error, o manager.ChangeOptions) (*Series, error) {
	return edit(ctx, m, "set", key, o, func(s *Series) ([]task.Spec, error) {
		if err := change(s); err != nil {
			return nil, err
		}
		s.Key = key
		_, err := check(ctx, m, &s.Definition)
		return nil, err
	})
}

// Pause keeps the occurrences of a series from beginning, or lets them begin again. Times that have passed meanwhile are left out.
func Pause(ctx context.Context, m *manager.Manager, key string, pause bool, o manager.ChangeOptions) (*Series, error) {
	verb := "resume"
	if pause {
		verb = "pause"
	}
	return edit(ctx, m, verb, key, o, func(s *Series) ([]task.Spec, error) {
		now, _, err := clockOf(ctx, m)
		if err != nil || s.Paused == pause {
			return nil, err
		}
		s.Paused = pause
		clock, err := s.schedule(s.Created)
		if err != nil || pause || clock == nil || s.Next.IsZero() || s.Next.After(now) {
			return nil, err
		}
		next := clock.next(now)
		s.note(Entry{What: passed, At: s.Next, Before: next})
		if s.Waits, s.Next = false, next; !s.End.IsZero() && next.After(s.End) {
			s.Next = time.Time{}
		}
		return nil, nil
	})
}

// RunNow begins an occurrence now, also while another one runs or the series is paused. When it is due next does not change, unless its
// program says that.
func RunNow(ctx context.Context, m *manager.Manager, key string, o manager.ChangeOptions) (*Series, error) {
	return edit(ctx, m, "run", key, o, func(s *Series) ([]task.Spec, error) {
		now, epoch, err := clockOf(ctx, m)
		if err != nil {
			return nil, err
		}
		d := decision{verdict: verdict{After: s}, s: s, now: now, epoch: epoch}
		last := s.Last
		d.open(byHand, d.now)
		if s.Last = last; s.ETA {
			s.Last, s.Next = d.now, time.Time{}
		}
		spec, err := s.spec(d.Open[0])
		return []task.Spec{spec}, err
	})
}

// Remove removes a series; its tasks go on. The error matches [task.ErrNoRecord] if there is no such series.
func Remove(ctx context.Context, m *manager.Manager, key string, o manager.ChangeOptions) error {
	return remove(ctx, m, key, o, func(*task.Record) (bool, error) { return true, nil })
}

// RemoveIf removes a series that may be removed as it is when it goes: may is asked again if others change it meanwhile. It returns the
// series as it was then, and whether it was removed; its tasks go on. The error matches [task.ErrNoRecord] if there is no such series.
func RemoveIf(
	ctx context.Context, m *manager.Manager, key string, may func(*Series) bool, o manager.ChangeOptions,
) (s *Series, removed bool, err error) {
	err = remove(ctx, m, key, o, func(r *task.Record) (bool, error) {
		var err error
		if s, err = parse(r); err == nil {
			removed = may(s)
		}
		return removed, err
	})
	return s, removed && err == nil && !o.DryRun, err
}

func remove(ctx context.Context, m *manager.Manager, key string, o manager.ChangeOptions, may func(*task.Record) (bool, error)) error {
	for try := 1; ; try++ {
		r, err := m.Record(ctx, task.KindSeries, key)
		if err != nil {
			return err
		}
		if is, err := may(&r); err != nil || !is || o.DryRun {
			return err
		}
		if err = m.RemoveRecord(ctx, r); !errors.Is(err, task.ErrRecordChanged) || try == changeTries {
			return err
		}
	}
}
