package manager

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Record returns the record of a kind and name. The error matches [task.ErrNoRecord] if there is no such record.
func (m *Manager) Record(ctx context.Context, kind, name string) (task.Record, error) {
	found, err := retryUntilAvailable(ctx, m, func() ([]task.Record, error) { return m.store.RecordsNamed(ctx, kind, []string{name}) })
	switch {
	case err != nil:
		return task.Record{}, err
	case len(found) == 0:
		return task.Record{}, fmt.Errorf("%s %q: %w", kind, name, task.ErrNoRecord)
	}
	return found[0], nil
}

// recordPage is how many records are read in one go.
const recordPage = 200

// Records reads the records of a kind in the order of their names, from the one that follows after. An error ends it.
func (m *Manager) Records(ctx context.Context, kind, after string) iter.Seq2[task.Record, error] {
	return eachOf(func(yield func([]task.Record, error) bool) {
		for {
			names, err := m.store.RecordNames(ctx, kind, after, recordPage)
			if err == nil && len(names) == 0 {
				return
			}
			var found []task.Record
			if err == nil {
				found, err = m.store.RecordsNamed(ctx, kind, names)
			}
			if !yield(found, err) || err != nil || len(names) < recordPage {
				return
			}
			after = names[len(names)-1]
		}
	})
}

// Pending are records that somebody has to look at.
type Pending struct {
	// Records are those that are due, and those of which watched tasks have ended.
	Records []task.Record
	// Now is TIME of Redis; Next when the next record is due, zero if none is. Total is how many records of the kind there are.
	Now, Next time.Time
	Total     int64
	// Epoch is that of [Life].
	Epoch int64
}

// PendingRecords returns up to most records of a kind that are due, and up to most whose watched tasks have ended. Its cost depends on
// what it returns, not on how many records there are.
func (m *Manager) PendingRecords(ctx context.Context, kind string, most int) (Pending, error) {
	found, err := m.store.PendingRecords(ctx, kind, most)
	if err != nil {
		return Pending{}, err
	}
	p := Pending{Records: found.Records, Now: task.Moment(found.Now), Total: found.Total, Epoch: found.Epoch}
	if found.Next != statemachine.Never {
		p.Next = task.Moment(found.Next)
	}
	return p, nil
}

// WriteRecord writes a record as r has it and opens tasks, at once: all of it or nothing. r.Version and r.Ended say what was read, 0 for a
// record that is not there yet; if it is another one by then, the error matches [task.ErrRecordChanged] and nothing is opened. Sent again
// after a lost reply it answers as if sent once. It returns the record as it is then; Opened are the tasks of the last write that
// had some. Errors about the tasks are those of [Manager.Submit].
func (m *Manager) WriteRecord(ctx context.Context, r task.Record, w RecordTasks) (task.Record, error) {
	if m.unusable != nil {
		return r, m.unusable
	}
	if err := r.Check(); err != nil {
		return r, err
	}
	write := tasks.RecordWrite{Record: r, Call: conn.NewToken(), Watched: w.Watched}
	if len(w.Specs) == 0 {
		_, err := retryUntilAvailable(ctx, m, func() (struct{}, error) { return struct{}{}, m.store.PutRecord(ctx, &write) })
		return write.Record, m.noteRecord(ctx, err, r.Kind+" set", r.Name)
	}
	err := conn.ErrRules
	for first := true; errors.Is(err, conn.ErrRules); first = false {
		if !first {
			if _, err = m.readDefaults(ctx); err != nil {
				break
			}
		}
		err = m.openForRecord(ctx, &write, w.Specs)
	}
	return write.Record, m.noteRecord(ctx, err, r.Kind+" set", r.Name)
}

// noteRecord notes a change of a record, unless it has failed, and returns the error of either.
func (m *Manager) noteRecord(ctx context.Context, err error, what, name string) error {
	if err == nil {
		err = m.note(ctx, ChangeOptions{}, what, []string{name}, nil)
	}
	return err
}

// RecordTasks are what [Manager.WriteRecord] opens, at most 1,000.
type RecordTasks struct {
	Specs []task.Spec
	// Watched lets the record know when they end: it is pending then (see [Manager.PendingRecords]).
	Watched bool
}

// openForRecord opens the tasks by the rules of queues that are known.
func (m *Manager) openForRecord(ctx context.Context, write *tasks.RecordWrite, specs []task.Spec) error {
	s := m.newSubmission(nil)
	for i := range specs {
		if err := s.put(ctx, &specs[i]); err != nil {
			return specError(ctx, i, err)
		}
	}
	opening, err := m.store.Prepare(tasks.OpenRequest{
		Key: write.Call, Specs: s.batch.tasks, KeyTTL: m.opt.KeyTTL, Rules: s.batch.rules, Record: write,
	})
	if err != nil {
		return err
	}
	opened, err := retryUntilAvailable(ctx, m, func() ([]task.Opened, error) { return opening.Send(ctx) })
	if err == nil {
		m.logOpened(ctx, opened, specs)
	}
	return err
}

// RemoveRecord removes a record if it is as it was read. Removing one that is gone is no error; the error matches
// [task.ErrRecordChanged] if it is another one now. What was opened for it goes on.
func (m *Manager) RemoveRecord(ctx context.Context, r task.Record) error {
	_, err := retryUntilAvailable(ctx, m, func() (struct{}, error) {
		return struct{}{}, m.store.EraseRecord(ctx, r.Kind, r.Name, r.Version)
	})
	return m.noteRecord(ctx, err, r.Kind+" rm", r.Name)
}

// Ends tells which of the tasks have ended, or are not there any more, and when their programs want to run again: by eta= of $TDF_CONTROL
// in the last round, or what a handler gave to its Job.SetETA; zero for one that did not say.
func (m *Manager) Ends(ctx context.Context, ids []int64) (map[int64]time.Time, error) {
	ends := make(map[int64]time.Time, len(ids))
	for page := range slices.Chunk(ids, planPage) {
		found, err := m.fields(ctx, page, "state", "outcome", "round", "0:eta")
		if err != nil {
			return nil, err
		}
		for i, f := range found {
			if f == nil || f["state"] == "" {
				ends[page[i]] = time.Time{}
				continue
			}
			if !endOf(f).IsOutcome() {
				continue
			}
			if ends[page[i]], err = m.etaOf(ctx, page[i], f); err != nil {
				return nil, err
			}
		}
	}
	return ends, nil
}

// etaOf is what the last round said, of which the fields have only the first.
func (m *Manager) etaOf(ctx context.Context, id int64, f map[string]string) (time.Time, error) {
	const eta = ":eta"
	if f["round"] != "0" {
		found, err := m.fields(ctx, []int64{id}, f["round"]+eta)
		if err != nil || found[0] == nil {
			return time.Time{}, err
		}
		f = map[string]string{"0" + eta: found[0][f["round"]+eta]}
	}
	return task.ParseMoment(f["0"+eta]), nil
}
