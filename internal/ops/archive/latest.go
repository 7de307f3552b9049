package archive

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
)

// Key tells tasks apart: ids begin again when a namespace was flushed.
type Key struct {
	ID      int64
	Created string
}

// Key is that of the task.
func (h *Head) Key() Key { return Key{h.ID, h.Created} }

// Latest calls visit for each task once, with the record that counts, in the order of [Reader.Each]. It reads everything twice, and
// three times if any id is there more than once: memory is two bits for each id, and about a hundred bytes for each task whose id
// comes more than once.
func (r *Reader) Latest(ctx context.Context, visit func(*Entry) error) error {
	all, err := r.segments()
	if err != nil {
		return err
	}
	var once, again IDs
	err = r.pass(ctx, all, r.Damaged, func(e *Entry) error {
		if !once.Add(e.ID) {
			again.Add(e.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	quiet := func(*DamageError) {} // it was told
	best := map[Key]version{}
	if again.Len() > 0 {
		err = r.pass(ctx, all, quiet, func(e *Entry) error {
			if v, there := best[e.Key()]; again.Has(e.ID) && (!there || v.rev < e.Rev) {
				best[e.Key()] = version{e.Rev, e.at}
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	return r.pass(ctx, all, quiet, func(e *Entry) error {
		if again.Has(e.ID) && best[e.Key()].at != e.at {
			return nil
		}
		return visit(e)
	})
}

// version is the record of a task that counts.
type version struct {
	rev int64
	at  position
}

// Find returns all tasks with an id, each with the record that counts, the one that was opened last first.
func (r *Reader) Find(ctx context.Context, id int64) ([]Record, error) {
	one := *r
	one.Wants = func(first, last int64) bool { return first <= id && id <= last }
	found := map[Key]Record{}
	err := one.Each(ctx, func(e *Entry) error {
		if old, there := found[e.Key()]; e.ID != id || there && old.Rev >= e.Rev {
			return nil
		}
		record, err := e.Record()
		if err != nil {
			r.Damaged(&DamageError{Path: e.File, Problem: "has a record that cannot be read: " + err.Error(), Remedy: restoreRemedy})
			return nil //nolint:nilerr // it was told
		}
		found[e.Key()] = record
		return nil
	})
	return slices.SortedFunc(maps.Values(found), func(a, b Record) int {
		return cmp.Or(cmp.Compare(moment(b.Created), moment(a.Created)), cmp.Compare(b.Created, a.Created))
	}), err
}

// IDs is a set of ids. It takes a bit for each id of those ranges of 65,536 from which it has one.
type IDs struct {
	chunks map[int64]*[chunkWords]uint64
	n      int64
}

const (
	chunkBits  = 16
	chunkWords = 1 << chunkBits / 64
)

// Add puts an id into the set, and reports whether it was not there.
func (s *IDs) Add(id int64) bool {
	if s.chunks == nil {
		s.chunks = map[int64]*[chunkWords]uint64{}
	}
	c := s.chunks[id>>chunkBits]
	if c == nil {
		c = new([chunkWords]uint64)
		s.chunks[id>>chunkBits] = c
	}
	word, bit := place(id)
	if c[word]&bit != 0 {
		return false
	}
	c[word] |= bit
	s.n++
	return true
}

// Has reports whether an id is in the set.
func (s *IDs) Has(id int64) bool {
	c := s.chunks[id>>chunkBits]
	if c == nil {
		return false
	}
	word, bit := place(id)
	return c[word]&bit != 0
}

// Len is how many ids there are.
func (s *IDs) Len() int64 { return s.n }

func place(id int64) (word int, bit uint64) {
	low := id & (1<<chunkBits - 1)
	return int(low / 64), 1 << (low % 64)
}

// Newest returns the newest revisions of up to most tasks among those meant, the last archived first.
func (r *Reader) Newest(ctx context.Context, most int, meant func(*Entry) (bool, error)) ([]Record, error) {
	top := newestTasks{most: most}
	err := r.Each(ctx, func(e *Entry) error {
		if !top.wants(&e.Head) {
			return nil
		}
		is, err := meant(e)
		if is {
			top.add(&e.Head, e.text)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var records []Record
	for _, one := range top.sorted() {
		record, err := ParseRecord(one.line)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// newestTasks are the tasks that were archived last, of those that came along; of a task the newest revision. It holds fewer than
// twice as many as are wanted.
type newestTasks struct {
	most int
	has  map[Key]newestTask
	// oldest is the last of those that were wanted when the others were dropped.
	oldest newestTask
}

// newestTask is one of them; line is the record as it was found: only those that are left in the end are read.
type newestTask struct {
	head Head
	line []byte
}

// wants reports whether a record has to be looked at.
func (n *newestTasks) wants(h *Head) bool {
	if old, there := n.has[h.Key()]; there {
		return h.Rev > old.head.Rev
	}
	return newestFirst(newestTask{head: *h}, n.oldest) < 0
}

// add takes a record that is wanted.
func (n *newestTasks) add(h *Head, line []byte) {
	if n.has == nil {
		n.has = map[Key]newestTask{}
	}
	n.has[h.Key()] = newestTask{*h, bytes.Clone(line)}
	if len(n.has) < 2*n.most {
		return
	}
	kept := n.sorted()
	clear(n.has)
	for _, one := range kept {
		n.has[one.head.Key()], n.oldest = one, one
	}
}

// sorted are the tasks that are wanted, that one first that was archived last.
func (n *newestTasks) sorted() []newestTask {
	all := slices.SortedFunc(maps.Values(n.has), newestFirst)
	return all[:min(len(all), n.most)]
}

// newestFirst orders tasks by when they were archived.
func newestFirst(a, b newestTask) int {
	return cmp.Or(cmp.Compare(b.head.ArchivedAt(), a.head.ArchivedAt()), cmp.Compare(b.head.ID, a.head.ID))
}
