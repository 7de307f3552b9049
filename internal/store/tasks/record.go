package tasks

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// RecordWrite is a record as it is to be: Version and Ended are what was read, or 0 for a new one.
type RecordWrite struct {
	task.Record

	// Call names the call, which may be sent again.
	Call string
	// Watched says that the record counts the ends of the tasks that are opened with it.
	Watched bool
}

// args are those of the script, in the order of lib/recorded.lua.
func (w *RecordWrite) args() []string {
	due := ""
	if !w.Due.IsZero() {
		due = task.Stamp(w.Due).Text()
	}
	return []string{
		w.Kind, w.Name, strconv.FormatInt(w.Version, 10), w.Call, w.Value, due, strconv.FormatInt(w.Ended, 10),
	}
}

// RecordField is the record that a task was opened for, as "kind:name".
const RecordField = "record"

// recordPlan stands in the field plan of a task whose record counts its end.
const recordPlan = "r"

// fields are those of the tasks that are opened with it.
func (w *RecordWrite) fields() []string {
	fields := []string{RecordField, w.Kind + ":" + w.Name}
	if w.Watched {
		fields = append(fields, PlanField, recordPlan)
	}
	return fields
}

// written notes what the script has answered.
func (w *RecordWrite) written(version int64, opened []task.Opened) {
	w.Version = version
	w.Opened = make([]int64, len(opened))
	for i := range opened {
		w.Opened[i] = opened[i].ID
	}
}

// PutRecord writes a record, whose Version becomes the new one. The error matches [task.ErrRecordChanged] if it is not as it was read.
// With tasks it is an [OpenRequest] with Record.
func (s *Tasks) PutRecord(ctx context.Context, w *RecordWrite) error {
	args := make([]any, 0, 7)
	for _, text := range w.args() {
		args = append(args, text)
	}
	r, err := s.RunList(ctx, "put", conn.Subject{}, args...)
	if err != nil {
		return err
	}
	if r.Text(0) == "record" {
		return &task.RecordChangedError{Kind: w.Kind, Name: w.Name}
	}
	w.Version = r.Number(1)
	return nil
}

// EraseRecord removes a record. Removing one that is gone is no error. The error matches [task.ErrRecordChanged] if it has another version.
func (s *Tasks) EraseRecord(ctx context.Context, kind, name string, version int64) error {
	r, err := s.RunList(ctx, "erase", conn.Subject{}, kind, name, version)
	if err == nil && r.Text(0) == "record" {
		err = &task.RecordChangedError{Kind: kind, Name: name}
	}
	return err
}

// Pending are records of a kind that somebody has to look at.
type Pending struct {
	// Now is TIME of Redis; Next when the next record is due, Never if none is known.
	Now, Next statemachine.Time
	// Total is how many records of the kind there are.
	Total   int64
	Records []task.Record
	// Epoch is that of the data.
	Epoch int64
}

// PendingRecords returns up to most records that are due, and up to most whose watched tasks have ended.
func (s *Tasks) PendingRecords(ctx context.Context, kind string, most int) (Pending, error) {
	r, err := s.RunList(ctx, "pending", conn.Subject{}, kind, most)
	if err != nil {
		return Pending{}, err
	}
	p := Pending{Now: statemachine.Time(r.Number(0)), Next: statemachine.Never, Total: r.Number(2)}
	seen, _ := s.History()
	p.Epoch = seen.Epoch
	if text := r.Text(1); text != "" {
		p.Next = scoreOf(text)
	}
	for i := range r.List(3) {
		one := r.List(3).List(i)
		p.Records = append(p.Records, decodeRecord(kind, one.Text(0), one.Texts()[1:]))
	}
	return p, nil
}

// decodeRecord reads due, ended, version, value and the ids that were opened.
func decodeRecord(kind, name string, f []string) task.Record {
	r := task.Record{Kind: kind, Name: name, Value: f[3]}
	r.Version, _ = strconv.ParseInt(f[2], 10, 64) // a damaged one is not there
	ended, _ := strconv.ParseFloat(f[1], 64)
	if r.Ended = int64(ended); f[0] != "" {
		r.Due = task.Moment(scoreOf(f[0]))
	}
	if f[4] != "" {
		for _, o := range remembered(f[4]) {
			r.Opened = append(r.Opened, o.ID)
		}
	}
	return r
}

// scoreOf is a score as Redis writes it, which is a time.
func scoreOf(text string) statemachine.Time {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return statemachine.Never
	}
	return statemachine.Time(seconds*1e6 + 0.5)
}

// RecordsNamed reads records of a kind, in the order of the names; those that are not there are left out.
func (s *Tasks) RecordsNamed(ctx context.Context, kind string, names []string) ([]task.Record, error) {
	hashes, due, ended := make([]*redis.SliceCmd, len(names)), make([]*redis.FloatCmd, len(names)), make([]*redis.FloatCmd, len(names))
	err := s.Pipelined(ctx, "records", func(p redis.Pipeliner) {
		for i, name := range names {
			hashes[i] = p.HMGet(ctx, s.Keys.Record(kind+":"+name), "version", "value", "opened")
			due[i] = p.ZScore(ctx, s.Keys.RecordsDue(kind), name)
			ended[i] = p.ZScore(ctx, s.Keys.RecordsEnded(kind), name)
		}
	})
	if err != nil {
		return nil, err
	}
	var found []task.Record
	for i, name := range names {
		f := conn.Reply(hashes[i].Val())
		at := ""
		if due[i].Err() == nil {
			at = strconv.FormatFloat(due[i].Val(), 'f', 6, 64)
		}
		r := decodeRecord(kind, name, []string{at, strconv.FormatFloat(ended[i].Val(), 'f', 0, 64), f.Text(0), f.Text(1), f.Text(2)})
		if r.Version > 0 {
			found = append(found, r)
		}
	}
	return found, nil
}

// RecordNames lists up to most names of a kind, in order, from the one that follows after.
func (s *Tasks) RecordNames(ctx context.Context, kind, after string, most int) ([]string, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	names, err := s.Redis.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: s.Keys.Records(kind), Start: from, Stop: "+", ByLex: true, Count: int64(most),
	}).Result()
	if err != nil {
		return nil, s.Failed("records", err)
	}
	return names, nil
}
