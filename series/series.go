package series

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Overlap is what happens to an occurrence that is due while one before it has not ended.
type Overlap string

// The overlaps.
const (
	OverlapSkip    Overlap = "skip"    // it is left out, and noted; the default
	OverlapQueue   Overlap = "queue"   // it waits for the end; of several that wait the last one stays, unless all that are missed are wanted
	OverlapAllow   Overlap = "allow"   // both run
	OverlapReplace Overlap = "replace" // the one before is cancelled, and it begins when that has ended
)

// Missed is what happens to occurrences that were due while no server ran, or could not begin.
type Missed string

// What may happen to them.
const (
	MissedSkip Missed = "skip" // all are left out that are more than MaxBehind late, by default a minute
	MissedOnce Missed = "once" // the last one begins, in the place of all; the default
	MissedAll  Missed = "all"  // each begins, in order
)

// Task is the task of each occurrence: the JSON object that POST /tasks takes, by field. Times such as +10m count from when the
// occurrence is due. It has no key.
type Task map[string]json.RawMessage

// Definition is a series as somebody wants it.
type Definition struct {
	// Key names it: a printable text of at most 200 bytes.
	Key  string `json:"key"`
	Task Task   `json:"task"`
	// Cron is when it is due, by the clocks of Zone, by default UTC; or Every, at least a second and counted from Start, how often. With
	// ETA the program says when it is due next; what it does not say is left to Cron or Every, and without these the series is over then.
	Cron  string       `json:"cron,omitempty"`
	Zone  string       `json:"zone,omitempty"`
	Every task.Seconds `json:"every,omitempty"`
	ETA   bool         `json:"eta,omitempty"`
	// Start is the earliest time, by default when it was made, End the latest. Where all that is missed is wanted, a Start may be in the past.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
	// Jitter is the most that an occurrence begins later than it is due, each by a part of its own, at most a day.
	Jitter task.Seconds `json:"jitter,omitempty"`
	// Overlap and Missed are what their types say. MaxBehind is how late an occurrence may begin; 0 for any time.
	Overlap   Overlap      `json:"overlap,omitempty"`
	Missed    Missed       `json:"missed,omitempty"`
	MaxBehind task.Seconds `json:"max_behind,omitempty"`
}

// Series is a series as it was when it was read.
type Series struct {
	Definition

	// Paused says that nothing of it begins. Times that pass meanwhile are left out.
	Paused bool `json:"paused"`
	// Created is when it was made.
	Created time.Time `json:"created"`
	// Next is when it is due, without the jitter; zero while its program is to say it, or if it is over.
	Next time.Time `json:"next,omitzero"`
	// Number is how many occurrences have begun; Last when the last one of them was due.
	Number int64     `json:"number"`
	Last   time.Time `json:"last,omitzero"`
	// Live are tasks of it that may not have ended, as far as it matters to the next one. Waits says that one is due that waits for them.
	Live  []int64 `json:"live"`
	Waits bool    `json:"waits"`
	// Fallback is when a series with ETA is due next, if the program of the task that runs does not say; zero for what the
	// definition says.
	Fallback time.Time `json:"fallback,omitzero"`
	// Modified is when somebody changed it last.
	Modified time.Time `json:"modified,omitzero"`
	// Error is why an occurrence could not begin; it is tried again.
	Error string `json:"error,omitempty"`
	// History is what became of the newest occurrences, the newest last.
	History []Entry `json:"history"`
}

// What may become of occurrences.
const (
	fired   = "fired"   // it began when it was due, or later
	byHand  = "by hand" // somebody had it begin
	skipped = "skipped" // one before it had not ended
	passed  = "missed"  // it was due while nothing could begin
)

// Entry is what became of an occurrence, or of several in a row.
type Entry struct {
	What string `json:"what"`
	// At is when it was due, or the first of several. Before is when the next one is due that is not among them.
	At     time.Time `json:"at"`
	Before time.Time `json:"before,omitzero"`
	// Number is which one it is of those that begin, Task its task, Begun when that was opened, in which Epoch.
	Number int64     `json:"number,omitempty"`
	Task   int64     `json:"task,omitempty"`
	Begun  time.Time `json:"begun,omitzero"`
	Epoch  int64     `json:"epoch,omitempty"`
}

// mostHistory is how many events a series keeps.
const mostHistory = 20

// Over reports whether nothing of it will begin any more by itself.
func (s *Series) Over() bool { return s.Next.IsZero() && (!s.ETA || len(s.Live) == 0) }

// Bounds of a definition.
const (
	mostJitter  = 24 * time.Hour
	mostTask    = 48 << 10
	shortest    = time.Second
	longestSpan = 100 * 365 * 24 * time.Hour
)

// complete returns a *statemachine.FieldError about what cannot be, and puts defaults in the place of what is missing. It does not look at
// queues.
func (d *Definition) complete() error {
	d.Overlap, d.Missed = cmp.Or(d.Overlap, OverlapSkip), cmp.Or(d.Missed, MissedOnce)
	bad := func(field, value, want string) error {
		return &statemachine.FieldError{Field: field, Value: value, Want: want}
	}
	record := task.Record{Kind: task.KindSeries, Name: d.Key}
	if err := record.Check(); err != nil {
		return bad("key", d.Key, "a name: a printable text of at most 200 bytes")
	}
	text := jsonOf(d.Task)
	_, err := d.Task.spec(time.Unix(0, 0))
	switch {
	case err != nil:
		return err
	case len(text) > mostTask:
		return bad("task", fmt.Sprintf("%d bytes", len(text)), fmt.Sprintf("at most %d bytes", mostTask))
	case !slices.Contains([]Overlap{OverlapSkip, OverlapQueue, OverlapAllow, OverlapReplace}, d.Overlap):
		return bad("overlap", string(d.Overlap), "skip, queue, allow or replace")
	case !slices.Contains([]Missed{MissedSkip, MissedOnce, MissedAll}, d.Missed):
		return bad("missed", string(d.Missed), "skip, once or all")
	case !d.End.IsZero() && d.End.Before(d.Start):
		return bad("end", d.End.Format(time.RFC3339), "later than start")
	}
	return cmp.Or(d.checkTimes(bad), d.checkSpans(bad)) //nolint:wrapcheck // both are ours
}

func (d *Definition) checkTimes(bad func(field, value, want string) error) error {
	switch {
	case d.Cron != "" && d.Every != 0:
		return bad("every", time.Duration(d.Every).String(), "used with cron; leave out one of them")
	case d.Cron == "" && d.Every == 0 && !d.ETA:
		return bad("cron", "", "a time; give cron, every, or eta if the program says when it is due next")
	case d.Cron == "" && d.Zone != "":
		return bad("zone", d.Zone, "used without cron; leave it out")
	case d.ETA && d.Overlap == OverlapAllow:
		return bad("overlap", string(d.Overlap), "skip, queue or replace: the end of an occurrence says when the next one is due")
	case d.Cron == "":
		return nil
	}
	_, err := newCalendar(d.Cron, cmp.Or(d.Zone, "UTC"))
	return err
}

func (d *Definition) checkSpans(bad func(field, value, want string) error) error {
	for _, s := range []struct {
		field       string
		is          task.Seconds
		least, most time.Duration
	}{{"every", d.Every, shortest, longestSpan}, {"jitter", d.Jitter, 0, mostJitter}, {"max_behind", d.MaxBehind, 0, longestSpan}} {
		if span := time.Duration(s.is); span != 0 && (span < s.least || span > s.most) {
			return bad(s.field, span.String(), fmt.Sprintf("from %v to %v", s.least, s.most))
		}
	}
	if d.Every != 0 && d.Jitter >= d.Every {
		return bad("jitter", time.Duration(d.Jitter).String(), "less than every")
	}
	return nil
}

// NewTask is the task of each occurrence, from a spec. Moments of the spec do not move with the occurrences; "+10m" as end_before, set
// in the Task, does.
func NewTask(spec *task.Spec) Task {
	t := Task{}
	for _, f := range task.Fields() {
		text, said := spec.Text(f.Name)
		if !said {
			continue
		}
		_ = t.Set(f.Name, text) // what a spec cannot say is left out
	}
	return t
}

// Set sets a field to what its text says; an empty text leaves it to the defaults. The error is a *statemachine.FieldError; then nothing
// changes.
func (t Task) Set(name, text string) error {
	if text == "" {
		delete(t, name)
		return nil
	}
	raw, none := jsonOf(text), time.Unix(0, 0)
	err := (&task.Spec{}).SetJSON(name, raw, none)
	if err != nil && json.Valid([]byte(text)) && (&task.Spec{}).SetJSON(name, json.RawMessage(text), none) == nil {
		raw, err = json.RawMessage(text), nil // a list or an object
	}
	if err == nil {
		t[name] = raw
	}
	return err //nolint:wrapcheck // it is that of the field
}

// jsonOf is the JSON of what can be written so.
func jsonOf(v any) json.RawMessage {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // people read it
	if err := e.Encode(v); err != nil {
		return nil
	}
	return bytes.TrimSpace(text.Bytes())
}

// spec reads the task of an occurrence that is due at a time.
func (t Task) spec(at time.Time) (task.Spec, error) {
	var spec task.Spec
	for _, name := range slices.Sorted(maps.Keys(t)) {
		raw := bytes.TrimSpace(t[name])
		if slices.Contains([]string{"key", "step", "args"}, name) {
			return spec, &statemachine.FieldError{Field: name, Value: string(raw), Want: "given: each occurrence is a task of its own; leave it out"}
		}
		if err := spec.SetJSON(name, raw, at); err != nil {
			return spec, err
		}
	}
	for name, text := range map[string]string{"source": spec.Source, "stdin": spec.Stdin} {
		if strings.HasPrefix(text, task.FilePrefix) {
			want := "what is there wherever an occurrence begins, such as blob:sha256=HASH; files of a host are not"
			return spec, &statemachine.FieldError{Field: name, Value: text, Want: want}
		}
	}
	if t["argv"] != nil && t["input"] != nil {
		want := "the only one of argv and input; leave out one of them"
		return spec, &statemachine.FieldError{Field: "argv", Value: string(t["argv"]), Want: want}
	}
	return spec, nil
}

// occurrence is one that is to begin.
type occurrence struct {
	Number int64
	At     time.Time
}

// The attributes of the task of an occurrence: the series, when it was due, which one it is. A program has them as TDF_META_SERIES and
// so on.
const (
	metaSeries     = "series"
	metaScheduled  = "scheduled"
	metaOccurrence = "occurrence"
)

// spec is the task of an occurrence.
func (d *Definition) spec(o occurrence) (task.Spec, error) {
	spec, err := d.Task.spec(o.At)
	meta := maps.Clone(spec.Meta)
	if meta == nil {
		meta = map[string]string{}
	}
	meta[metaSeries], meta[metaScheduled] = d.Key, o.At.UTC().Format(time.RFC3339Nano)
	meta[metaOccurrence] = strconv.FormatInt(o.Number, 10)
	spec.Meta = meta
	return spec, err
}

// schedule is when it is due apart from what the program says, nil for never. The definition was checked.
func (d *Definition) schedule(created time.Time) (schedule, error) {
	switch {
	case d.Cron != "":
		return newCalendar(d.Cron, cmp.Or(d.Zone, "UTC"))
	case d.Every > 0:
		from := d.Start
		if from.IsZero() {
			from = created
		}
		return interval{from: from, every: time.Duration(d.Every)}, nil
	}
	return nil, nil //nolint:nilnil // only its program says when it is due
}

// delay is by how much later than due the occurrence of a time begins: the same wherever it is asked for.
func (d *Definition) delay(at time.Time) time.Duration {
	if d.Jitter <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%d", d.Key, at.UnixMicro()) // it cannot fail
	sum := h.Sum64()
	sum ^= sum >> 33 // its low bits alone follow the last digits
	sum *= 0xff51afd7ed558ccd
	sum ^= sum >> 33
	return time.Duration(sum % uint64(d.Jitter)).Truncate(time.Microsecond)
}

// parse reads the series that a record holds.
func parse(r *task.Record) (*Series, error) {
	s := &Series{}
	if err := json.Unmarshal([]byte(r.Value), s); err != nil {
		return nil, fmt.Errorf("series %q: its record is damaged: %w", r.Name, err)
	}
	s.Key = r.Name
	open := r.Opened
	for i := len(s.History) - 1; i >= 0 && len(open) > 0; i-- {
		e := &s.History[i]
		switch {
		case e.Number == 0:
			continue
		case e.Task > 0: // known since then
			return s, nil
		}
		e.Task, open = open[len(open)-1], open[:len(open)-1]
		if s.Overlap != OverlapAllow {
			s.Live = append(s.Live, e.Task)
		}
	}
	return s, nil
}

// text is what its record holds.
func (s *Series) text() string {
	return string(jsonOf(s))
}

// note adds an event to the history; skips in a row are one.
func (s *Series) note(e Entry) {
	if n := len(s.History); n > 0 && e.Number == 0 && s.History[n-1].What == e.What && s.History[n-1].Before.Equal(e.At) {
		s.History[n-1].Before = e.Before
		return
	}
	s.History = append(s.History, e)
	if n := len(s.History); n > mostHistory {
		s.History = slices.Clone(s.History[n-mostHistory:])
	}
}

// Masked is the series without the values of variables, for people.
func (s *Series) Masked() *Series {
	shown := *s
	if raw, has := s.Task["variables"]; has {
		shown.Task = maps.Clone(s.Task)
		var values map[string]string
		if json.Unmarshal(raw, &values) != nil {
			values = map[string]string{}
		}
		for name := range values {
			values[name] = hidden
		}
		shown.Task["variables"] = jsonOf(values)
	}
	shown.Live, shown.History = append([]int64{}, s.Live...), append([]Entry{}, s.History...)
	return &shown
}

// hidden stands for the value of a variable.
var hidden = strings.Repeat("*", 3)
