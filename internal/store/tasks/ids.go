package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
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
func (s *Tasks) Spans(ctx context.Context, first, last int64) ([]Span, error) {
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

// SomeSpans is the beginning of [Tasks.Spans], up to some id: as much as one call reads, however fragmented the ids are.
func (s *Tasks) SomeSpans(ctx context.Context, first, last int64) (spans []Span, upTo int64, err error) {
	epochs, err := s.Gaps(ctx)
	if err != nil {
		return nil, 0, err
	}
	return s.some(ctx, epochs, first, last)
}

func (s *Tasks) some(ctx context.Context, epochs []conn.Epoch, first, last int64) (spans []Span, upTo int64, err error) {
	purged, upTo, err := s.purgedSpans(ctx, first, last)
	if err != nil {
		return nil, 0, err
	}
	return without(spansOf(epochs, first, upTo), purged), upTo, nil
}

func spansOf(epochs []conn.Epoch, first, last int64) (spans []Span) {
	upTo := func(to int64, lost bool) {
		if to = min(to, last); first <= to {
			spans = append(spans, Span{First: first, Last: to, Lost: lost})
			first = to + 1
		}
	}
	slices.SortFunc(epochs, func(a, b conn.Epoch) int { return cmp.Compare(a.FromID, b.FromID) })
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
// than [Tasks.LastID], which is the last one left out then.
func (s *Tasks) NewestID(ctx context.Context) (int64, error) {
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

// PurgedError says which task was archived and is not in Redis any more, because of the servers' archive_retention. It matches
// [task.ErrPurged].
type PurgedError struct{ ID int64 }

// Error names the task.
func (e *PurgedError) Error() string {
	return fmt.Sprintf("task %d was archived, and has left Redis by the archive_retention of the servers", e.ID)
}

// Unwrap returns the kind.
func (e *PurgedError) Unwrap() error { return task.ErrPurged }

// purgedPage is how many ranges of purged ids one call reads.
const purgedPage = 1000

// purgedSpans are the ids of purged tasks from first to last, as ranges, in order, and up to where they were read: there may be
// as many as tasks that are left, so one call reads only some, and the next one goes on after upTo.
func (s *Tasks) purgedSpans(ctx context.Context, first, last int64) (spans []Span, upTo int64, err error) {
	found, err := s.Redis.ZRangeByScoreWithScores(ctx, s.Keys.PurgedIDs(), &redis.ZRangeBy{
		Min: strconv.FormatInt(first, 10), Max: "+inf", Count: purgedPage,
	}).Result()
	if err != nil && !conn.AboutData(err) {
		return nil, 0, s.Failed("purged", err)
	}
	upTo = last
	for _, z := range found {
		text, _ := z.Member.(string)
		r := Span{First: max(first, conn.IDOf(text)), Last: min(last, int64(z.Score))}
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
func (s *Tasks) PurgedAll(ctx context.Context) ([]Span, error) {
	var all []Span
	const last = 1 << 53
	for first := int64(1); first <= last; {
		spans, upTo, err := s.purgedSpans(ctx, first, last)
		if err != nil {
			return nil, err
		}
		all = append(all, spans...)
		first = upTo + 1
	}
	return all, nil
}

// PurgedCount is how many tasks were purged of each outcome.
func (s *Tasks) PurgedCount(ctx context.Context) (map[statemachine.State]int64, error) {
	texts, err := s.Redis.HGetAll(ctx, s.Keys.Purged()).Result()
	if err != nil && !conn.AboutData(err) {
		return nil, s.Failed("purged", err)
	}
	counts := make(map[statemachine.State]int64, len(texts))
	for outcome, text := range texts {
		counts[statemachine.State(outcome)], _ = strconv.ParseInt(text, 10, 64)
	}
	return counts, nil
}

// absent is the error about a task that is not there: it says what is known of its id.
func (s *Tasks) absent(ctx context.Context, id int64) error {
	spans, _, err := s.purgedSpans(ctx, id, id)
	switch {
	case err != nil:
		return err
	case len(spans) > 0:
		return &PurgedError{ID: id}
	}
	known, err := s.fate(ctx, id)
	if errors.Is(err, task.ErrUnreachable) {
		return err
	}
	return fmt.Errorf("task %d: %w%s", id, task.ErrNoTask, known)
}

// fate is what is known of an id without a record, empty for nothing: not each login may read all of it.
func (s *Tasks) fate(ctx context.Context, id int64) (string, error) {
	last, err := s.LastID(ctx)
	if err != nil || id < 1 {
		return "", err
	}
	gaps, err := s.Gaps(ctx)
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(gaps, func(g conn.Epoch) bool { return g.FromID < id && id <= g.ToID }); i >= 0 {
		return gaps[i].LeftOut(), nil
	}
	if id <= last {
		return "; its id was given out, but there is no record of it", nil
	}
	number, err := s.Redis.HGet(ctx, s.Keys.Meta(), "epoch").Int64()
	if err != nil && !conn.IsNil(err) && !conn.AboutData(err) {
		return "", s.Failed("epoch", err)
	}
	opened := len(slices.DeleteFunc(gaps, func(g conn.Epoch) bool { return g.Confirmed }))
	if number > int64(opened)+1 { // a flush begins an epoch as well, and forgets the records of those before
		return fmt.Sprintf("; the namespace was flushed, which begins the ids at 1 again, and the newest is %d", last), nil
	}
	return "", nil
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

// Births are the moments at which tasks were made. After a flush ids begin at 1 again. A reader that goes on reading tasks compares their
// births, and so learns that an id means another task now, or that its task is gone. They are not safe for concurrent use.
type Births struct {
	store *Tasks
	epoch int64
	of    map[int64]string
}

// Births begins to follow tasks of the epoch of now.
func (s *Tasks) Births(ctx context.Context) (*Births, error) {
	life, err := s.Life(ctx)
	if err != nil {
		return nil, err
	}
	return &Births{store: s, epoch: life.Epoch, of: map[int64]string{}}, nil
}

// BirthFields are the fields that [Births.Check] must be shown, and others. The state is among them, which every sound record has.
func BirthFields(others ...string) []string {
	return append([]string{"state", "created", "0:open", "0:blocked"}, others...)
}

// Check compares records of tasks with those that earlier calls were given; nil stands for a missing one. The error matches
// [task.ErrGone] if a
// record is that of another task, or if one is missing and the namespace was flushed, or lost changes, since. A record without stamps is
// ignored: a client in another language may still be writing it.
func (b *Births) Check(ctx context.Context, ids []int64, records []map[string]string) error {
	missing := int64(0)
	for i, id := range ids {
		was, is := b.of[id], birth(records[i])
		known := strings.Fields(was)
		switch {
		case records[i] == nil:
			missing = id
		case was == "":
			b.of[id] = is
		case is != "" && !slices.ContainsFunc(strings.Fields(is), func(stamp string) bool { return slices.Contains(known, stamp) }):
			return fmt.Errorf("task %d: %w; the id means another task now", id, task.ErrGone)
		}
	}
	if missing == 0 {
		return nil
	}
	life, err := b.store.Life(ctx)
	if err == nil && life.Epoch != b.epoch {
		err = fmt.Errorf("task %d: %w", missing, task.ErrGone)
	}
	return err
}

// Forget is called for a task that nobody asks about any more.
func (b *Births) Forget(id int64) { delete(b.of, id) }

// birth is the moments at which a task was first made, held and released, as far as the record tells. The one of its making stays: in
// created, if the state in which it was made is stamped again.
func birth(fields map[string]string) string {
	return strings.TrimSpace(fields["created"] + " " + fields["0:open"] + " " + fields["0:blocked"])
}
