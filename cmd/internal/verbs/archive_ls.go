package verbs

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// archiveSelection is which tasks of an archive are meant. All of them are archived, so states say how they ended.
func (c *choice) archiveSelection(s *session) (manager.Selection, error) {
	return c.archiveSelectionWith(s, noLast)
}

// archiveSelectionWith is archiveSelection where newest says what the word last means.
func (c *choice) archiveSelectionWith(s *session, newest func() (int64, error)) (manager.Selection, error) {
	sel, err := c.selectionWith(s, newest)
	if err != nil {
		return sel, err
	}
	for _, state := range sel.States {
		if state != statemachine.Archived && !state.Ended() {
			return sel, cli.Usagef("--state %s: an archive has tasks that have ended and were archived; write archived for all of them, "+
				"or how they ended, such as failed", state)
		}
	}
	if !slices.Contains(sel.States, statemachine.Archived) {
		sel.Outcomes = sel.States
	}
	sel.States = nil
	return sel, nil
}

// cold is ls of an archive.
func (l *listing) cold(ctx context.Context, s *session, r *archive.Reader) error {
	if err := l.check(); err != nil {
		return err
	}
	sel, err := l.choice.archiveSelection(s)
	if err != nil {
		return err
	}
	c := &coldList{l: l, s: s, sel: &sel, found: &archive.IDs{}}
	r.Wants = c.wants
	if l.limit > 0 && sel.IDs == nil {
		err = c.newest(ctx, r)
	} else {
		err = c.stream(ctx, r)
	}
	if err == nil {
		err = c.hints()
	}
	return err
}

// coldList is one listing of an archive.
type coldList struct {
	l   *listing
	s   *session
	sel *manager.Selection
	// found are the ids that were looked at, n is how many tasks fit, more that there are some beyond the limit.
	found   *archive.IDs
	n       int
	more    bool
	columns []column
}

// wants reports whether some ids are looked for.
func (c *coldList) wants(first, last int64) bool {
	return c.sel.IDs == nil || slices.ContainsFunc(c.sel.IDs, func(r manager.IDRange) bool { return r.First <= last && first <= r.Last })
}

// task reads an entry, if it is meant.
func (c *coldList) task(e *archive.Entry) (*manager.Task, error) {
	if !c.meansHead(e) {
		return nil, nil //nolint:nilnil // not meant
	}
	record, err := e.Record()
	if err != nil {
		return nil, err
	}
	if t := manager.ArchivedTask(e.ID, record.Fields); fits(c.sel, t) {
		return t, nil
	}
	return nil, nil //nolint:nilnil // not meant
}

// meansHead judges an entry by its id and outcome.
func (c *coldList) meansHead(e *archive.Entry) bool {
	return c.wants(e.ID, e.ID) && (len(c.sel.Outcomes) == 0 || slices.Contains(c.sel.Outcomes, statemachine.State(e.Outcome)))
}

// means judges an entry by all conditions. It reads the whole record only if one of them needs that.
func (c *coldList) means(e *archive.Entry) (bool, error) {
	if c.sel.Queue == "" && c.sel.Program == "" && c.sel.Match == nil {
		return c.meansHead(e), nil
	}
	t, err := c.task(e)
	return t != nil, err
}

// fits judges a task by all conditions but its id and outcome.
func fits(sel *manager.Selection, t *manager.Task) bool {
	if sel.Queue != "" && sel.Queue != t.Queue || sel.Program != "" && sel.Program != t.Program {
		return false
	}
	if sel.Match == nil {
		return true
	}
	last := t.Last()
	return last.Number >= 0 && sel.Match.MatchString(last.Error)
}

// row is a task as the table and the JSON form want it: of its fields no more than of one in Redis.
func (l *listing) row(t *manager.Task) map[string]string {
	row := map[string]string{}
	for _, name := range listFields {
		if text, there := t.Fields[name]; there {
			row[name] = text
		}
	}
	row["id"], row["state"], row["queue"] = strconv.FormatInt(t.ID, 10), string(t.State), t.Queue
	row["status"] = strconv.Itoa(t.DisbatchStatus())
	if t.Outcome != statemachine.None {
		row["outcome"] = string(t.Outcome)
	}
	for _, name := range []string{workerField, nodeField} {
		if text := t.Fields[ofRound(t.Fields, name)]; text != "" && (*l.json || l.output == wideOutput) {
			row[name] = text
		}
	}
	return row
}

// newest prints those that were archived last, no more than the limit.
func (c *coldList) newest(ctx context.Context, r *archive.Reader) error {
	top := newestTasks{most: c.l.limit + 1}
	err := r.Each(ctx, func(e *archive.Entry) error {
		if !top.wants(&e.Head) {
			return nil
		}
		meant, err := c.means(e)
		if meant {
			top.add(&e.Head, e.Line())
		}
		return err
	})
	if err != nil {
		return err
	}
	lines := top.lines()
	c.more = len(lines) > c.l.limit
	rows := make([]map[string]string, min(len(lines), c.l.limit))
	for i := range rows {
		record, err := archive.ParseRecord(lines[i])
		if err != nil {
			return err
		}
		rows[i] = c.l.row(manager.ArchivedTask(record.ID, record.Fields))
	}
	c.n = len(rows)
	if *c.l.json {
		return cli.WriteJSON(c.s.out, taskObjects(rows))
	}
	return c.l.table(c.s, c.l.columns(rows), rows, true)
}

// stream prints all that fit, in the order of the archive, and holds no more than a page of them.
func (c *coldList) stream(ctx context.Context, r *archive.Reader) error {
	var rows []map[string]string
	err := r.Latest(ctx, func(e *archive.Entry) error {
		c.found.Add(e.ID)
		t, err := c.task(e)
		if err != nil || t == nil {
			return err
		}
		if rows = append(rows, c.l.row(t)); len(rows) < page {
			return nil
		}
		err = c.print(rows)
		rows = rows[:0]
		return err
	})
	if err == nil {
		err = c.print(rows)
	}
	if err == nil && *c.l.json {
		err = printf(c.s.out, "%s", map[bool]string{true: "[]\n", false: "\n]\n"}[c.n == 0])
	}
	return err
}

// print prints a page.
func (c *coldList) print(rows []map[string]string) error {
	first := c.n == 0
	c.n += len(rows)
	if *c.l.json {
		return c.objects(rows, first)
	}
	if first {
		seen := rows
		if len(rows) == page { // a later page may need the column QUEUE
			seen = append(seen, map[string]string{queueField: ""})
		}
		c.columns = c.l.columns(seen)
	}
	return c.l.table(c.s, c.columns, rows, first)
}

// objects prints a page of a JSON list that goes on.
func (c *coldList) objects(rows []map[string]string, first bool) error {
	for _, object := range taskObjects(rows) {
		var text bytes.Buffer
		if err := cli.WriteJSON(&text, object); err != nil {
			return err
		}
		if err := printf(c.s.out, "%s\n%s", map[bool]string{true: "[", false: ","}[first], bytes.TrimRight(text.Bytes(), "\n")); err != nil {
			return err
		}
		first = false
	}
	return nil
}

// hints says what is not shown, and which ids are those of no task of the archive.
func (c *coldList) hints() error {
	errs := c.s.cmd.ErrOrStderr()
	missing := c.missing()
	switch {
	case len(missing) > 0:
		const most = 100
		fmt.Fprintf(errs, "not in the archive: %s\n", shorten(ranges(missing), most))
		return cli.Exit(cli.ExitTaskFailed)
	case c.more:
		fmt.Fprintf(errs, "there are more tasks than these; see them with --limit 0\n")
	case c.n == 0 && !*c.l.json:
		fmt.Fprintf(errs, "no task of the archive fits\n")
	}
	return nil
}

// missing are the ids that were named, and are of no task, unless there are other conditions.
func (c *coldList) missing() (ids []int64) {
	if c.l.choice.Narrow() {
		return nil
	}
	for _, r := range c.sel.IDs {
		for id := r.First; id <= r.Last; id++ {
			if !c.found.Has(id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// newestTasks are the tasks that were archived last, of those that came along; of a task the newest revision. It holds no more
// than so many.
type newestTasks struct {
	most int
	list newestHeap
	has  map[archive.Key]*newestTask
}

// newestTask is one of them. at is its place in the heap.
type newestTask struct {
	head archive.Head
	when statemachine.Time
	// line is the record as it was found: only those that are left in the end are read.
	line []byte
	at   int
}

// wants reports whether a record has to be looked at.
func (n *newestTasks) wants(h *archive.Head) bool {
	if old := n.has[h.Key()]; old != nil {
		return h.Rev > old.head.Rev
	}
	return len(n.list) < n.most || older(n.list[0], &newestTask{head: *h, when: h.ArchivedAt()})
}

// add takes a record that is wanted.
func (n *newestTasks) add(h *archive.Head, line []byte) {
	if n.has == nil {
		n.has = map[archive.Key]*newestTask{}
	}
	one := &newestTask{head: *h, when: h.ArchivedAt(), line: bytes.Clone(line)}
	if old := n.has[h.Key()]; old != nil {
		one.at = old.at
		*old = *one
		heap.Fix(&n.list, old.at)
		return
	}
	n.has[h.Key()] = one
	heap.Push(&n.list, one)
	if len(n.list) > n.most {
		if last, is := heap.Pop(&n.list).(*newestTask); is {
			delete(n.has, last.head.Key())
		}
	}
}

// lines are the records, that one first that was archived last.
func (n *newestTasks) lines() [][]byte {
	slices.SortFunc(n.list, func(a, b *newestTask) int {
		return cmp.Or(cmp.Compare(b.when, a.when), cmp.Compare(b.head.ID, a.head.ID))
	})
	lines := make([][]byte, len(n.list))
	for i, one := range n.list {
		lines[i] = one.line
	}
	return lines
}

// older orders tasks by when they were archived.
func older(a, b *newestTask) bool {
	return cmp.Or(cmp.Compare(a.when, b.when), cmp.Compare(a.head.ID, b.head.ID)) < 0
}

// newestHeap has the oldest of them in front.
type newestHeap []*newestTask

// Len implements heap.Interface.
func (h *newestHeap) Len() int { return len(*h) }

// Less implements heap.Interface.
func (h *newestHeap) Less(i, j int) bool { return older((*h)[i], (*h)[j]) }

// Swap implements heap.Interface.
func (h *newestHeap) Swap(i, j int) {
	list := *h
	list[i], list[j] = list[j], list[i]
	list[i].at, list[j].at = i, j
}

// Push implements heap.Interface.
func (h *newestHeap) Push(x any) {
	if one, is := x.(*newestTask); is {
		one.at = len(*h)
		*h = append(*h, one)
	}
}

// Pop implements heap.Interface.
func (h *newestHeap) Pop() any {
	last := len(*h) - 1
	one := (*h)[last]
	*h = (*h)[:last]
	return one
}
