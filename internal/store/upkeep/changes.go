package upkeep

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/task"
)

// MostChanges is how many entries of the log of changes a server leaves; an entry takes about 250 bytes.
const MostChanges = 100_000

// EnterChange appends an entry to the log of changes; its ID and At are those of the log. call names it: the same call may be sent again.
func (s *Upkeep) EnterChange(ctx context.Context, call string, e *task.ChangeEntry) error {
	stored := *e
	stored.ID, stored.At = 0, time.Time{} // the log has them
	text, err := json.Marshal(stored)
	if err == nil {
		_, err = s.Run(ctx, "enter", conn.Subject{}, call, string(text))
	}
	return err
}

// ChangesBefore returns up to most entries of the log of changes that come right before the one of that number, 0 for the end; the newest
// first. One that cannot be read is Damaged.
func (s *Upkeep) ChangesBefore(ctx context.Context, before int64, most int) ([]task.ChangeEntry, error) {
	v, err := s.Run(ctx, "entries", conn.Subject{}, conn.IDText(before), most)
	if err != nil {
		return nil, err
	}
	answer, _ := v.([]any)
	found := make([]task.ChangeEntry, 0, len(answer))
	for i := len(answer) - 1; i > 0; i-- {
		text, _ := answer[i].(string)
		first, _ := answer[0].(int64)
		e := parseChange(text)
		e.ID = first + int64(i) - 1
		found = append(found, e)
	}
	return found, nil
}

// parseChange reads what the script enter wrote.
func parseChange(text string) task.ChangeEntry {
	_, rest, _ := strings.Cut(text, " ")
	at, text, _ := strings.Cut(rest, " ")
	moment := task.ParseMoment(at)
	var e task.ChangeEntry
	if moment.IsZero() || json.Unmarshal([]byte(text), &e) != nil {
		return task.ChangeEntry{At: moment, Damaged: true}
	}
	e.At = moment
	return e
}

// ShortenChanges removes the oldest entries of the log of changes beyond the newest most.
func (s *Upkeep) ShortenChanges(ctx context.Context, most int) error {
	for {
		v, err := s.Run(ctx, "shorten", conn.Subject{}, strconv.Itoa(most))
		if left, _ := v.(int64); err != nil || left == 0 {
			return err
		}
	}
}
