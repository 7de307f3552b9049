package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// seriesPrefix begins the keys of the series that are Flock's tasks, which end with the number of the task.
const seriesPrefix = "flock:"

func seriesKey(tid int64) string { return seriesPrefix + strconv.FormatInt(tid, 10) }

// tidOf is the number of the task that a series is, 0 for another series.
func tidOf(key string) int64 {
	tid, err := strconv.ParseInt(strings.TrimPrefix(key, seriesPrefix), 10, 64)
	if err != nil || seriesKey(tid) != key {
		return 0
	}
	return tid
}

// Attributes of the tasks: the number of the function, and that the series had other parameters later on.
const (
	metaFunction = "flock_fid"
	metaParams   = "flock_params"
)

// mostKey is how many bytes a key may have.
const mostKey = 16 << 10

// flockTask is a task of Flock as it was seen.
type flockTask struct {
	tid int64
	s   *series.Series
	// last is the task of its newest occurrence, nil for none, or one that is gone.
	last *task.Task
}

// look reads a task. The error matches [task.ErrNoRecord] if it is not scheduled.
func (f *flock) look(ctx context.Context, tid int64) (*flockTask, error) {
	s, err := series.Get(ctx, f.m, seriesKey(tid))
	if err != nil {
		return nil, err
	}
	v := &flockTask{tid: tid, s: s}
	if id := newestTask(s); id > 0 {
		if v.last, err = f.m.Task(ctx, id); errors.Is(err, task.ErrNotFound) {
			err = nil
		}
	}
	return v, err
}

// noTask is the answer where a task is not scheduled, and else err.
func noTask(tid int64, err error) error {
	if errors.Is(err, task.ErrNoRecord) {
		return notHere("task", tid, "POST /task schedules one")
	}
	return err
}

// newestTask is the task of the newest occurrence, 0 for none.
func newestTask(s *series.Series) int64 {
	if n := len(s.Live); n > 0 {
		return s.Live[n-1]
	}
	for _, e := range slices.Backward(s.History) {
		if e.Task > 0 {
			return e.Task
		}
	}
	return 0
}

func (v *flockTask) live() bool { return len(v.s.Live) > 0 }

// ended reports whether its occurrence has ended, which the series does not know yet.
func (v *flockTask) ended() bool {
	return v.live() && (v.last == nil || v.last.EndState() != statemachine.None)
}

// said is when its program wants it again, as it has said and the series does not know yet; zero if it has not.
func (v *flockTask) said() time.Time {
	if v.live() && v.last != nil && (v.last.State == statemachine.Executed || v.ended()) {
		if r := v.last.Last(); r != nil {
			return r.ETA
		}
	}
	return time.Time{}
}

// over reports whether it is scheduled no longer.
func (v *flockTask) over() bool {
	return v.s.Over() || v.ended() && v.said().IsZero() && v.s.Fallback.IsZero()
}

// eta is when it is due, as was said last.
func (v *flockTask) eta() time.Time {
	for _, at := range []time.Time{v.said(), v.s.Fallback, v.s.Next} {
		if !at.IsZero() {
			return at
		}
	}
	return v.s.Last
}

// What a task does.
const (
	flockScheduled = "scheduled" // it is not due
	flockDue       = "due"       // a worker may reserve it
	flockReserved  = "reserved"
	flockSettling  = "settling" // a server is to say whether it is tried again
	flockOver      = "over"
)

func (v *flockTask) state() string {
	switch {
	case v.over():
		return flockOver
	case !v.live(), v.ended(), !v.said().IsZero():
		return flockScheduled
	case v.last.State == statemachine.Running:
		return flockReserved
	case v.last.State == statemachine.Executed:
		return flockSettling
	}
	return flockDue
}

// fid and key are what it was scheduled with.
func (v *flockTask) fid() int64 {
	var meta map[string]string
	if json.Unmarshal(v.s.Task["meta"], &meta) != nil {
		return 0
	}
	fid, _ := strconv.ParseInt(meta[metaFunction], 10, 64) // 0 if somebody has spoilt it
	return fid
}

func (v *flockTask) key() string {
	var argv []string
	if json.Unmarshal(v.s.Task["argv"], &argv) != nil || len(argv) != 1 {
		return ""
	}
	return argv[0]
}

// params are those that the next worker gets.
func (v *flockTask) params() json.RawMessage {
	if v.live() && !v.ended() {
		return paramsOf(v.s, v.last)
	}
	return v.s.Task["params"]
}

// paramsOf are the parameters of a series, or those of its task if they were changed last: the log of the task says so.
func paramsOf(s *series.Series, t *task.Task) json.RawMessage {
	for _, line := range slices.Backward(t.Log) {
		switch {
		case strings.Contains(line.Text, "attributes "+metaParams+" set by "):
			return s.Task["params"]
		case strings.Contains(line.Text, "params set by "):
			return t.Params
		}
	}
	return s.Task["params"]
}

// flockTaskJSON is a task as it is shown.
type flockTaskJSON struct {
	TID      int64           `json:"tid"`
	FID      int64           `json:"fid"`
	Key      string          `json:"task_key"`
	ETA      json.Number     `json:"eta"`
	Params   json.RawMessage `json:"params,omitempty"`
	Modified json.Number     `json:"modified"`
	WID      int64           `json:"wid"`
	State    string          `json:"state"`
	Error    string          `json:"error,omitempty"`
}

func (v *flockTask) shown() *flockTaskJSON {
	shown := &flockTaskJSON{
		TID: v.tid, FID: v.fid(), Key: v.key(), ETA: epoch(v.eta()), Params: v.params(), Modified: epoch(v.s.Modified), State: v.state(),
	}
	if v.last == nil {
		return shown
	}
	if r := v.last.Last(); r != nil && shown.State == flockReserved {
		shown.WID = widOf(r.Worker)
	}
	for _, r := range slices.Backward(v.last.Rounds) {
		if r.Error != "" {
			shown.Error = r.Error
			break
		}
	}
	return shown
}

// see is look as requests need it: a task that was completed for good is gone, even if the server that took the report died before it
// removed the series.
func (f *flock) see(ctx context.Context, tid int64, o manager.ChangeOptions) (*flockTask, error) {
	v, err := f.look(ctx, tid)
	if err == nil && v.over() && v.last != nil && v.last.EndState() == statemachine.Succeeded {
		err = cmp.Or(f.removeDone(ctx, tid, v.last.ID, o), task.ErrNoRecord)
	}
	return v, noTask(tid, err)
}

func (f *flock) getTask(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	v, err := f.see(ctx, q.number("tid"), q.change("", false))
	if err != nil {
		return nil, err
	}
	return &doorAnswer{status: http.StatusOK, body: v.shown()}, nil
}

// takenError is a key that another task of the function has.
type takenError struct {
	tid  int64
	same bool
}

// Error says what to do.
func (e *takenError) Error() string {
	if e.same {
		return "duplicate task_key: a task of the function has it; PUT /task/" + strconv.FormatInt(e.tid, 10) + " changes that"
	}
	return "another task_key has the number of this one; change it, for example by a blank at its end"
}

// addTries is how often a task that others add or remove meanwhile is looked at again.
const addTries = 10

func (f *flock) addTask(ctx context.Context, q *doorRequest) (*doorAnswer, error) {
	d, err := f.definition(ctx, q)
	if err != nil {
		return nil, err
	}
	tid := tidOf(d.Key)
	for try := 1; ; try++ {
		s, err := series.Add(ctx, f.m, *d, q.change("", false))
		if err == nil {
			shown := (&flockTask{tid: tid, s: s}).shown()
			return &doorAnswer{status: http.StatusCreated, location: "/task/" + strconv.FormatInt(tid, 10), body: shown}, nil
		}
		if !errors.Is(err, series.ErrExists) || try == addTries {
			return nil, err
		}
		err = f.makeRoom(ctx, q, d)
		if taken, ok := errors.AsType[*takenError](err); ok {
			return &doorAnswer{status: http.StatusConflict, body: map[string]any{"error": taken.Error(), "tid": taken.tid}}, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// definition is the series that a task is.
func (f *flock) definition(ctx context.Context, q *doorRequest) (*series.Definition, error) {
	fid, err := q.whole("fid")
	if err != nil {
		return nil, err
	}
	key, err := q.text("task_key", mostKey)
	if err != nil {
		return nil, err
	}
	eta, err := q.moment("eta")
	if err != nil {
		return nil, err
	}
	params, err := q.params()
	if err != nil {
		return nil, err
	}
	fn, err := f.function(ctx, fid)
	if err != nil {
		return nil, noFunction(fid, err)
	}
	number := strconv.FormatInt(fid, 10)
	of := series.Task{
		"program": asJSON("flock"), "class": asJSON(class(fn.Env)), "argv": asJSON([]string{key}),
		"meta": asJSON(map[string]string{metaFunction: number}), "archive": asJSON(task.ArchiveAtOnce), // no manager need run
	}
	if params != nil {
		of["params"] = params
	}
	return &series.Definition{
		Key: seriesKey(idOf("task", number, key)), Task: of, ETA: true, Start: eta, Missed: series.MissedAll,
	}, nil
}

// asJSON is the JSON of texts.
func asJSON(v any) json.RawMessage {
	text, _ := json.Marshal(v) //nolint:errchkjson // texts always can
	return text
}

// makeRoom removes the task that has the key, if that is over. The error is a *takenError if it is not.
func (f *flock) makeRoom(ctx context.Context, q *doorRequest, d *series.Definition) error {
	tid := tidOf(d.Key)
	v, err := f.look(ctx, tid)
	if errors.Is(err, task.ErrNoRecord) {
		return nil // it has gone meanwhile
	}
	if err != nil {
		return err
	}
	wanted := &flockTask{s: &series.Series{Definition: *d}}
	same := v.fid() == wanted.fid() && v.key() == wanted.key()
	if !same || !v.over() {
		return &takenError{tid: tid, same: same}
	}
	_, _, err = series.RemoveIf(ctx, f.m, d.Key, v.unchanged, q.change("", false))
	if errors.Is(err, task.ErrNoRecord) {
		err = nil
	}
	return err
}
