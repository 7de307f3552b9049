package store

import (
	"cmp"
	"context"
	"slices"
)

// Span is the ids from First to Last, both included.
type Span struct {
	First, Last int64
	// Lost says that they are known to have been given out, and were gone when an
	// epoch began: only a client in another language may still write one of them.
	Lost bool
}

// Spans are the ids from first to last among which there may be tasks, in order. It
// leaves out what epochs left out and nobody is known to have got, and what was purged.
func (s *Store) Spans(ctx context.Context, first, last int64) ([]Span, error) {
	epochs, err := s.Gaps(ctx)
	if err != nil {
		return nil, err
	}
	var spans []Span
	for from := first; ; {
		some, upTo, err := s.some(ctx, epochs, from, last)
		spans = append(spans, some...)
		if err != nil || upTo >= last {
			return spans, err
		}
		from = upTo + 1
	}
}

// SomeSpans is the beginning of [Store.Spans], up to some id: as much as one call reads, however fragmented the ids are.
func (s *Store) SomeSpans(ctx context.Context, first, last int64) (spans []Span, upTo int64, err error) {
	epochs, err := s.Gaps(ctx)
	if err != nil {
		return nil, 0, err
	}
	return s.some(ctx, epochs, first, last)
}

func (s *Store) some(ctx context.Context, epochs []Epoch, first, last int64) (spans []Span, upTo int64, err error) {
	purged, upTo, err := s.PurgedSpans(ctx, first, last)
	if err != nil {
		return nil, 0, err
	}
	return without(spansOf(epochs, first, upTo), purged), upTo, nil
}

func spansOf(epochs []Epoch, first, last int64) (spans []Span) {
	upTo := func(to int64, lost bool) {
		if to = min(to, last); first <= to {
			spans = append(spans, Span{First: first, Last: to, Lost: lost})
			first = to + 1
		}
	}
	slices.SortFunc(epochs, func(a, b Epoch) int { return cmp.Compare(a.FromID, b.FromID) })
	for i := range epochs {
		e := &epochs[i]
		upTo(e.FromID, false)
		upTo(e.FromID+e.LostIDs(), true)
		first = max(first, e.ToID+1)
	}
	upTo(last, false)
	return spans
}

// NewestID is the newest id that was given out and is not known to be lost, 0 if
// there is none. When an epoch has begun and nothing was opened since, it is lower
// than [Store.LastID], which is the last one left out then.
func (s *Store) NewestID(ctx context.Context) (int64, error) {
	last, err := s.LastID(ctx)
	if err != nil {
		return 0, err
	}
	epochs, err := s.Gaps(ctx)
	newest := int64(0)
	for _, span := range spansOf(epochs, 1, last) {
		if !span.Lost {
			newest = span.Last
		}
	}
	return newest, err
}
