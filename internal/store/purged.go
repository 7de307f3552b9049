package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
)

// PurgedError says that a task was archived and is not in Redis any more, because of the servers' archive_retention. It matches
// [ErrPurged] and [ErrNotFound].
type PurgedError struct{ ID int64 }

// Error names the task.
func (e *PurgedError) Error() string {
	return fmt.Sprintf("task %d was archived, and has left Redis by the archive_retention of the servers", e.ID)
}

// Is reports whether the target is one of the errors that it matches.
func (e *PurgedError) Is(target error) bool { return target == ErrPurged || target == ErrNotFound }

// purgedPage is how many ranges of purged ids one call reads.
const purgedPage = 1000

// PurgedSpans are the ids of purged tasks from first to last, as ranges, in order, and up to where they were read: there may be
// as many as tasks that are left, so one call reads only some, and the next one goes on after upTo.
func (s *Store) PurgedSpans(ctx context.Context, first, last int64) (spans []Span, upTo int64, err error) {
	found, err := s.rdb.ZRangeByScoreWithScores(ctx, s.keys.purgedIDs(), &redis.ZRangeBy{
		Min: strconv.FormatInt(first, 10), Max: "+inf", Count: purgedPage,
	}).Result()
	if err != nil && !aboutData(err) {
		return nil, 0, s.failed("purged", err)
	}
	upTo = last
	for _, z := range found {
		text, _ := z.Member.(string)
		r := Span{First: max(first, idOf(text)), Last: min(last, int64(z.Score))}
		if r.First > last {
			return spans, last, nil
		}
		spans = append(spans, r)
	}
	if len(found) == purgedPage {
		upTo = min(last, int64(found[len(found)-1].Score))
	}
	return spans, upTo, nil
}

// PurgedAll are the ids of all purged tasks as ranges, in order.
func (s *Store) PurgedAll(ctx context.Context) ([]Span, error) {
	var all []Span
	const last = 1 << 53
	for first := int64(1); first <= last; {
		spans, upTo, err := s.PurgedSpans(ctx, first, last)
		if err != nil {
			return nil, err
		}
		all = append(all, spans...)
		first = upTo + 1
	}
	return all, nil
}

// PurgedCount is how many tasks were purged of each outcome.
func (s *Store) PurgedCount(ctx context.Context) (map[statemachine.State]int64, error) {
	texts, err := s.rdb.HGetAll(ctx, s.keys.purged()).Result()
	if err != nil && !aboutData(err) {
		return nil, s.failed("purged", err)
	}
	counts := make(map[statemachine.State]int64, len(texts))
	for outcome, text := range texts {
		counts[statemachine.State(outcome)], _ = strconv.ParseInt(text, 10, 64)
	}
	return counts, nil
}

// absent is the error about a task that is not there: it says what is known of its id.
func (s *Store) absent(ctx context.Context, id int64) error {
	spans, _, err := s.PurgedSpans(ctx, id, id)
	switch {
	case err != nil:
		return err
	case len(spans) > 0:
		return &PurgedError{ID: id}
	}
	known, err := s.fate(ctx, id)
	if errors.Is(err, ErrUnreachable) {
		return err
	}
	return fmt.Errorf("task %d: %w%s", id, ErrNotFound, known)
}

// fate is what is known of an id without a record, empty for nothing: not each login may read all of it.
func (s *Store) fate(ctx context.Context, id int64) (string, error) {
	last, err := s.LastID(ctx)
	if err != nil || id < 1 {
		return "", err
	}
	gaps, err := s.Gaps(ctx)
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(gaps, func(g Epoch) bool { return g.FromID < id && id <= g.ToID }); i >= 0 {
		return gaps[i].leftOut(), nil
	}
	if id <= last {
		return "; its id was given out, but there is no record of it", nil
	}
	number, err := s.rdb.HGet(ctx, s.keys.meta(), "epoch").Int64()
	if err != nil && !isNil(err) && !aboutData(err) {
		return "", s.failed("epoch", err)
	}
	opened := len(slices.DeleteFunc(gaps, func(g Epoch) bool { return g.Confirmed }))
	if number > int64(opened)+1 { // a flush begins an epoch as well, and forgets the records of those before
		return fmt.Sprintf("; the namespace was flushed, which begins the ids at 1 again, and the newest is %d", last), nil
	}
	return "", nil
}

func (e *Epoch) leftOut() string {
	why := "Redis had lost changes: if it was given out, it is lost"
	if e.Confirmed {
		why = "Redis had been started anew or failed over"
	}
	return fmt.Sprintf("; ids %d to %d were left out when %s", e.FromID+1, e.ToID, why)
}

// without are spans without what was purged of them.
func without(spans, purged []Span) []Span {
	var left []Span
	for _, sp := range spans {
		for len(purged) > 0 && purged[0].Last < sp.First {
			purged = purged[1:]
		}
		for _, gone := range purged {
			if gone.First > sp.Last {
				break
			}
			if sp.First < gone.First {
				left = append(left, Span{First: sp.First, Last: gone.First - 1, Lost: sp.Lost})
			}
			sp.First = gone.Last + 1
		}
		if sp.First <= sp.Last {
			left = append(left, sp)
		}
	}
	return left
}
