package conn

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// PublishEvents sets how many events of tasks are kept; 0 for none. Then those
// that are there go: with a gap behind them they would tell of steps that were never made.
func (s *Conn) PublishEvents(ctx context.Context, most int) error {
	err := s.Redis.HSet(ctx, s.Keys.Meta(), "events", most).Err()
	if err == nil && most <= 0 {
		err = s.Redis.Del(ctx, s.Keys.Events()).Err()
	}
	if err != nil {
		return s.Failed("publish", err)
	}
	return nil
}

// lastEvent is the end of the stream: a number beyond it, which no client of ours gives
// out, could not be asked for.
var lastEvent = strconv.Itoa(math.MaxInt64)

// Events returns at most n events from the number first on, the oldest first, those
// that cannot be read with an Err. Redis keeps the newest only, so the oldest may go while
// they are read. Fewer than n are all there are.
func (s *Conn) Events(ctx context.Context, first int64, n int) ([]task.Event, error) {
	found, err := s.Redis.XRangeN(ctx, s.Keys.Events(), strconv.FormatInt(first, 10), lastEvent, int64(n)).Result()
	if err != nil {
		return nil, s.Failed("events", err)
	}
	events := make([]task.Event, 0, len(found)) // not n: most calls find few
	for i := range found {
		for _, e := range parseEvents(&found[i]) {
			if e.Seq >= first && len(events) < n {
				events = append(events, e)
			}
		}
	}
	return events, nil
}

// EventSpan returns the numbers of the oldest and the newest event that Redis keeps;
// 0 if it keeps none.
func (s *Conn) EventSpan(ctx context.Context) (oldest, newest int64, err error) {
	var first, last *redis.XMessageSliceCmd
	err = s.Pipelined(ctx, "events", func(p redis.Pipeliner) {
		first = p.XRangeN(ctx, s.Keys.Events(), "-", lastEvent, 1)
		last = p.XRevRangeN(ctx, s.Keys.Events(), lastEvent, "-", 1)
	})
	if err != nil {
		return 0, 0, err
	}
	for i := range first.Val() {
		oldest = parseEvents(&first.Val()[i])[0].Seq
	}
	for _, m := range last.Val() {
		newest = sequence(m.ID)
	}
	return oldest, newest, nil
}

// sequence is the number of an event by its id in the stream, "<seq>-0".
func sequence(entry string) int64 {
	text, _, _ := strings.Cut(entry, "-")
	n, _ := strconv.ParseInt(text, 10, 64) // Redis takes numbers only
	return n
}

// parseEvents reads an entry of the stream: an event of each task it names, the last of which has the number of the
// entry. Names it has never heard of are no errors.
func parseEvents(m *redis.XMessage) []task.Event {
	fields := textFields(m)
	alike := task.Event{
		Seq: sequence(m.ID), At: task.ParseMoment(fields["at"]),
		From: statemachine.State(fields["from"]), To: statemachine.State(fields["to"]),
		Event: statemachine.Event(fields["event"]), Actor: statemachine.Actor(fields["actor"]),
		By: strings.TrimRight(fields["by"], " "), // names in logs have blanks behind them
	}
	ids, rounds := strings.Split(fields["id"], " "), strings.Split(fields["round"], " ")
	events := make([]task.Event, len(ids))
	for i, id := range ids {
		round := ""
		if i < len(rounds) {
			round = rounds[i]
		}
		events[i] = alike
		events[i].Seq -= int64(len(ids) - 1 - i)
		nameEvent(&events[i], id, round)
	}
	return events
}

// nameEvent says whose event it is, or what is wrong with that.
func nameEvent(e *task.Event, id, round string) {
	var n int64
	e.ID, e.Err = eventNumber("id", id, 1)
	if e.Err == nil {
		n, e.Err = eventNumber("round", round, 0)
	}
	if e.Round = int(n); e.Err != nil && e.ID > 0 && e.Event == task.Repair {
		e.Round, e.Err = -1, nil
	}
}

func eventNumber(name, text string, least int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least {
		return 0, &statemachine.FieldError{Field: name, Value: text, Want: fmt.Sprintf("a whole number from %d on", least)}
	}
	return n, nil
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
