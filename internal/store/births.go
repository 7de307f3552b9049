package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Births are the moments at which tasks were made. After a flush ids begin at 1 again. A reader that goes on reading tasks compares their
// births, and so learns that an id means another task now, or that its task is gone. They are not safe for concurrent use.
type Births struct {
	store *Store
	epoch int64
	of    map[int64]string
}

// Births begins to follow tasks of the epoch of now.
func (s *Store) Births(ctx context.Context) (*Births, error) {
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

// Check compares records of tasks with those that earlier calls were given; nil stands for a missing one. The error matches [ErrGone] if a
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
			return fmt.Errorf("task %d: %w; the id means another task now", id, ErrGone)
		}
	}
	if missing == 0 {
		return nil
	}
	life, err := b.store.Life(ctx)
	if err == nil && life.Epoch != b.epoch {
		err = fmt.Errorf("task %d: %w", missing, ErrGone)
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
