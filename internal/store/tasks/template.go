package tasks

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// openCall gathers the arguments of the script that opens tasks. What they have in common goes once: the fields and values of a template,
// and for each task those in which it differs.
type openCall struct {
	keys      conn.Keys
	req       *OpenRequest
	buckets   bucketArgs
	queues    []string
	templates []template
	inBucket  map[task.Bucket][]int // the templates of each
	tasks     []opened
	due       bool     // a task has an end_before
	named     []string // keys that tasks name
	place     map[string]int
}

// opened is a task of the call: its template, and its own record, fields and values in turn.
type opened struct {
	template int
	record   []string
}

// template is what tasks of a call with the same fields, in the same bucket, have in common.
type template struct {
	bucket, start, deadline int // place of the bucket, and of two values in the record
	held                    bool
	record                  []string // of the first of them
	differs                 uint64   // a bit for each field in which another one differs
}

// add adds the task at a place of the request.
func (c *openCall) add(place int) error {
	d := &c.req.Specs[place]
	if err := CheckNeeds(d, place, c.req.Plan > 0 && !c.req.Job); err != nil {
		return err
	}
	record := d.Values()
	last := 0
	if place > 0 {
		last = c.tasks[place-1].template
	}
	if place == 0 || !c.templates[last].takes(record) {
		last = c.find(d, record)
	}
	c.tasks[place] = opened{template: last, record: record}
	c.due = c.due || record[c.templates[last].deadline] != statemachine.Never.Text()
	return nil
}

// find returns the place of the template that takes a record, which it adds if it has to.
func (c *openCall) find(d *task.Definition, record []string) int {
	bucket := d.Bucket()
	for _, i := range c.inBucket[bucket] {
		if c.templates[i].takes(record) {
			return i
		}
	}
	if q := bucket.QueueName(); q != task.DefaultQueue && !slices.Contains(c.queues, q) {
		c.queues = append(c.queues, q)
	}
	if c.inBucket == nil {
		c.inBucket = map[task.Bucket][]int{}
	}
	c.inBucket[bucket] = append(c.inBucket[bucket], len(c.templates))
	c.templates = append(c.templates, template{
		bucket: c.buckets.index(bucket), held: d.Text("hold") != "", record: record,
		start: slices.Index(record, startField) + 1, deadline: slices.Index(record, "end_before") + 1,
	})
	return len(c.templates) - 1
}

// bucketFields are those in which tasks of a template never differ.
var bucketFields = []string{QueueField, "env", "labels", ResourcesField, ClassField, "priority"}

// takes reports whether a record has the fields of the template and is of its bucket, and notes in which values it differs.
func (t *template) takes(record []string) bool {
	if len(record) != len(t.record) {
		return false
	}
	differs := t.differs
	for i := 0; i < len(record); i += 2 {
		switch {
		case record[i] != t.record[i]:
			return false
		case record[i+1] == t.record[i+1]:
		case slices.Contains(bucketFields, record[i]):
			return false
		default:
			differs |= 1 << (i / 2)
		}
	}
	t.differs = differs
	return true
}

// own are the places of the values in which tasks differ.
func (t *template) own() []int {
	var places []int
	for i := 1; i < len(t.record); i += 2 {
		if t.differs>>(i/2)&1 != 0 {
			places = append(places, i)
		}
	}
	return places
}

// args are the arguments of the script.
func (c *openCall) args() []any {
	req := c.req
	n, marked := len(req.Specs), c.marked()
	ttl, life := cmp.Or(max(0, req.KeyTTL), submissionTTL), cmp.Or(max(0, req.Life), RequestTTL)
	along := req.Grow.args(n)
	if req.Record != nil {
		life, along = 0, withTexts(nil, req.Record.args())
	}
	args := make([]any, 0, 64+4*n)
	args = append(args,
		int(life.Seconds()), n, string(statemachine.Open), conn.Protocol,
		int64(ttl.Seconds()), string(statemachine.Blocked), conn.IDText(req.Plan), versionText(req.Rules),
		req.Digest, conn.Flag(c.due), conn.Flag(marked),
	)
	args = append(args, along...)
	args = withTexts(args, c.buckets.names)
	args = withTexts(args, c.queues)
	return c.records(args, marked)
}

// records adds the templates, and of each task what is its own.
func (c *openCall) records(args []any, marked bool) []any {
	args = append(args, len(c.templates))
	places := make([][]int, len(c.templates))
	for i := range c.templates {
		t := &c.templates[i]
		places[i] = t.own()
		args = withTexts(append(args, t.bucket, conn.Flag(t.held), t.start+1, t.deadline+1), t.record)
		args = append(args, len(places[i]))
		for _, place := range places[i] {
			args = append(args, place+1)
		}
	}
	for i := range c.tasks {
		t := &c.tasks[i]
		if len(c.templates) > 1 {
			args = append(args, t.template+1)
		}
		for _, place := range places[t.template] {
			args = append(args, &t.record[place])
		}
		if marked {
			args = c.marks(args, &c.req.Specs[i])
		}
	}
	return args
}

// marked reports whether there is more to say of a task than its fields.
func (c *openCall) marked() bool {
	return c.req.Plan > 0 && !c.req.Job || c.req.Record != nil || slices.ContainsFunc(c.req.Specs, func(d task.Definition) bool {
		return d.RetryOf > 0 || d.ReplayOf > 0 || d.Grows || d.Text("key") != ""
	})
}

// marks adds what is to be said of a task beside its fields.
func (c *openCall) marks(args []any, d *task.Definition) []any {
	key, how := c.identity(d)
	fields := append(keyed(d), further(d)...)
	if c.req.Record != nil {
		fields = append(fields, c.req.Record.fields()...)
	}
	args = withTexts(append(args, key, how, conn.IDText(d.ReplayOf)), fields)
	args = append(args, 2*len(d.Needs))
	for _, n := range d.Needs {
		to := strconv.FormatInt(n.Task, 10)
		if n.Task == 0 {
			to = "@" + strconv.Itoa(n.Index+1)
		}
		args = append(args, to, string(cmp.Or(n.On, task.NeedsSuccess)))
	}
	return args
}

// identity is the place of the key that says whether the task is there already.
func (c *openCall) identity(d *task.Definition) (place any, how string) {
	var name string
	switch key := d.Text("key"); {
	case d.RetryOf > 0:
		name, how = c.keys.Task(d.RetryOf), "retry"
	case key != "":
		name, how = c.keys.Submitted(d.Text(QueueField), key), d.Text("key_until")
	default:
		return "", ""
	}
	if c.place == nil {
		c.place = map[string]int{}
	}
	at, known := c.place[name]
	if !known {
		c.named = append(c.named, name)
		at = len(c.named)
		c.place[name] = at
	}
	return at, how
}

// keyed are the fields of a record that its key adds: first of all what stands for its work.
func keyed(d *task.Definition) []string {
	key := d.Text("key")
	if key == "" || d.RetryOf > 0 {
		return nil
	}
	work := make([]string, len(workFields))
	for i, name := range workFields {
		work[i] = d.Text(name)
	}
	fields := []string{"key_work", conn.Digest(work...)}
	if sum := conn.LongKey(key); sum != "" {
		fields = append(fields, "key_sum", sum)
	}
	return fields
}

// workFields are what a task does. Where, when and how often it does it may differ between two of one key.
var workFields = []string{"program", "source", ClassField, "input", "argv", "variables", "stdin", "params"}

// further are fields of a record that no spec has, and their values.
func further(d *task.Definition) (fields []string) {
	add := func(name string, n int64) {
		if n > 0 {
			fields = append(fields, name, strconv.FormatInt(n, 10))
		}
	}
	add("retry_of", d.RetryOf)
	add("replay_of", d.ReplayOf)
	if d.ReplayOf > 0 {
		fields = append(fields, "replay_round", strconv.Itoa(d.ReplayRound))
	}
	if d.Grows {
		fields = append(fields, "feeds", "1", "grows", "1")
	}
	return fields
}
