package store

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// EventEntry is an entry in the stream of events: its id there, "<seq>-0", and
// its fields as they are written (id, round, from, to, event, actor, by, at).
type EventEntry struct {
	ID     string
	Fields map[string]string
}

// Events returns at most n events after the one with the id given, the oldest
// first; begin with "". Redis keeps the newest only, so the oldest may go while
// they are read.
func (s *Store) Events(ctx context.Context, after string, n int) ([]EventEntry, error) {
	start := "-"
	if after != "" {
		start = "(" + after
	}
	found, err := s.rdb.XRangeN(ctx, s.keys.events(), start, "+", int64(n)).Result()
	if err != nil {
		return nil, s.failed("events", err)
	}
	entries := make([]EventEntry, len(found))
	for i := range found {
		entries[i] = EventEntry{ID: found[i].ID, Fields: textFields(&found[i])}
	}
	return entries, nil
}

func textFields(m *redis.XMessage) map[string]string {
	fields := make(map[string]string, len(m.Values))
	for name, value := range m.Values {
		if text, ok := value.(string); ok {
			fields[name] = text
		}
	}
	return fields
}

// EventSpan returns the ids of the oldest and the newest event that Redis keeps;
// empty if it keeps none.
func (s *Store) EventSpan(ctx context.Context) (oldest, newest string, err error) {
	var first, last *redis.XMessageSliceCmd
	err = s.pipelined(ctx, "events", func(p redis.Pipeliner) {
		first = p.XRangeN(ctx, s.keys.events(), "-", "+", 1)
		last = p.XRevRangeN(ctx, s.keys.events(), "+", "-", 1)
	})
	if err != nil {
		return "", "", err
	}
	for _, m := range first.Val() {
		oldest = m.ID
	}
	for _, m := range last.Val() {
		newest = m.ID
	}
	return oldest, newest, nil
}
