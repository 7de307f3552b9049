package worker

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// RoundRecord is what a tdf-worker says beside that in the report of a round: it has judged the round already. The gateway
// decides the move from it, and writes what it knows, into that round alone.
type RoundRecord struct {
	// Record are the fields of the record of the round, by name. An error in it means that the round has failed.
	Record map[string]recordText `json:"record,omitempty" doc:"For a tdf-worker: the record of the round by its fields, in base64."`
	// Cut names streams, or files, of which a part is lost.
	Cut []string `json:"cut,omitempty" maxItems:"3" enum:"output,error,files" doc:"For a tdf-worker: of what a part is lost."`
	// Lines are for the log of the task.
	Lines []roundLine `json:"lines,omitempty" maxItems:"1000" doc:"For a tdf-worker: lines for the log of the task."`
	// Node is what the end says of the node; nothing where somebody else has ended the round.
	Node NodeNews `json:"node,omitempty" enum:",good,bad" doc:"For a tdf-worker: what the end says of its node."`
	// StopAsked says that the worker knows that the task was cancelled.
	StopAsked bool `json:"stop_asked,omitempty" doc:"For a tdf-worker: it knows that the task was cancelled."`
	// Avoid says to which workers a task that is handed back is left.
	Avoid string `json:"avoid,omitempty" maxLength:"4000" doc:"For a tdf-worker: to whom a task is left that it hands back, and until when."`
}

// recordText is a field of a record, in base64, also an empty one.
type recordText string

// MarshalText implements [encoding.TextMarshaler].
func (t recordText) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, []byte(t)), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *recordText) UnmarshalText(text []byte) error {
	data, err := base64.StdEncoding.AppendDecode(nil, text)
	if *t = recordText(data); err != nil {
		return fmt.Errorf("base64: %w", err)
	}
	return nil
}

// roundLine is a line for the log of a task.
type roundLine struct {
	At   time.Time `json:"at" doc:"Time of the site."`
	Text string    `json:"text" maxLength:"10000"`
}

func linesOf(lines []roundLine) (all []Line) {
	for _, l := range lines {
		all = append(all, Line{At: max(0, task.Stamp(l.At)), Text: oneLine(l.Text)})
	}
	return all
}

// recordable are the fields that a worker may record of its round: how long a text is at most, and how it looks.
var recordable = sync.OnceValue(func() map[string]recordField {
	const number, line, long = 20, 4000, 64 << 10
	stream := int(usual().OutputLimit)
	return map[string]recordField{
		streamNames[0]: {stream + long, isAny}, "result": {stream + long, isAny}, "trace": {long, isAny},
		"progress": {line, isAny}, "signal": {line, isAny},
		streamNames[1]: {stream + long, isAny}, "stderr": {stream + long, isAny}, // with the words of the worker
		"status": {number, isNumber}, "exit_code": {number, isNumber}, "max_memory": {number, isNumber},
		"output_bytes": {number, isNumber}, "error_bytes": {number, isNumber},
		"user_time": {number, isTime}, "system_time": {number, isTime}, "retry": {number, isTime}, "eta": {number, isTime},
		statemachine.StampBegun: {number, isTime},
		"output_sha256":         {line, isHash}, "error_sha256": {line, isHash}, "program_sha256": {line, isHash},
		"files": {line, areFiles}, "whole": {line, areFiles}, "class": {number, isClass},
	}
})

type recordField struct {
	most int
	fits func(text string) bool
}

func isAny(string) bool { return true }

func isNumber(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n >= 0
}

func isTime(text string) bool {
	_, err := statemachine.ParseTime(text)
	return err == nil
}

var (
	hashForm  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	filesForm = regexp.MustCompile(`^((-|[0-9a-f]{64}) [0-9]{1,18} [0-9]{1,9}( |$)){1,2}$`)
)

func isHash(text string) bool { return hashForm.MatchString(text) }

func areFiles(text string) bool { return filesForm.MatchString(text) && !strings.HasSuffix(text, " ") }

func isClass(text string) bool {
	return slices.Contains([]statemachine.Class{
		statemachine.ClassProgram, statemachine.ClassTime, statemachine.ClassMemory, statemachine.ClassDisk, statemachine.ClassFetch,
		statemachine.ClassHost, statemachine.ClassInfrastructure, statemachine.ClassShortage, statemachine.ClassHandler,
	}, statemachine.Class(text))
}

// checkRecord returns a *statemachine.FieldError about what cannot be.
func (e *RoundEnd) checkRecord() error {
	for name, text := range e.Record {
		field, known := recordable()[name]
		switch {
		case !known:
			return &statemachine.FieldError{Field: "record." + name, Value: name, Want: "a field that a worker records of a round"}
		case len(text) > field.most:
			return &statemachine.FieldError{
				Field: "record." + name, Value: fmt.Sprintf("%d bytes", len(text)), Want: fmt.Sprintf("at most %d bytes", field.most),
			}
		case !field.fits(string(text)):
			return &statemachine.FieldError{Field: "record." + name, Value: oneLine(string(text)), Want: "what a worker records as " + name}
		}
	}
	for _, name := range e.Cut {
		if name != "files" && !slices.Contains(streamNames[:], name) {
			return &statemachine.FieldError{Field: "cut", Value: name, Want: "output, error or files"}
		}
	}
	if e.Node != "" && e.Node != NodeGood && e.Node != NodeBad {
		return &statemachine.FieldError{Field: "node", Value: string(e.Node), Want: "good or bad, or empty"}
	}
	for name, text := range e.Meta { // of too many the site leaves out some
		if err := task.CheckMeta(map[string]string{name: text}); err != nil {
			return err
		}
	}
	return nil
}

// occurrence is what the record of a round says of its end.
func (e *RoundEnd) occurrence() statemachine.Occurrence {
	text := func(name string) string { return string(e.Record[name]) }
	o := statemachine.Occurrence{
		Event: statemachine.Report, Actor: statemachine.Worker, Claim: e.Claim, Round: e.Round,
		Failed: text(streamNames[1]) != "", Class: statemachine.Class(text("class")), Random: rand.Float64(),
	}
	switch e.Ended {
	case EndedOverdue:
		o.Event = statemachine.StopOverdue
	case EndedCancelled:
		o.Event = statemachine.Terminate
	case EndedHandedBack:
		o.Event = statemachine.HandBack
	case EndedItself:
	}
	if code, err := strconv.Atoi(text("exit_code")); err == nil {
		o.ExitCode, o.HasExit = code, true
	}
	if at, err := statemachine.ParseTime(text("retry")); err == nil {
		o.Retry = at
	}
	return o
}

// decideRecord is the move of t, as it was in that round, with what its worker has recorded. Where it was to be opened again, and
// was cancelled, the error matches statemachine.ErrStopAsked until the worker knows that: it may have more to record.
func (e *RoundEnd) decideRecord(name string, t *Former, now statemachine.Time) (Commit, error) {
	if err := e.checkStop(t); err != nil {
		return Commit{}, err
	}
	move, err := statemachine.Decide(&t.Task, e.occurrence(), now)
	if err != nil {
		return Commit{}, err
	}
	c := Commit{Move: move, Writer: name, Bucket: t.Bucket, Node: e.Node, Meta: e.Meta, Lines: linesOf(e.Lines)}
	if reopens := e.Ended == EndedHandedBack || e.Ended == EndedOverdue; reopens && t.StopAsked && !e.StopAsked {
		return Commit{}, fmt.Errorf("task %d is not opened again: %w", e.Task, statemachine.ErrStopAsked)
	}
	back := move.Event == statemachine.HandBack && move.NextRound
	for name, text := range e.Record {
		if !back || name == "class" {
			c.Fields = append(c.Fields, statemachine.RoundField(e.Round, name), string(text))
		}
	}
	if back {
		c.Fields = append(c.Fields, e.avoided(now)...)
		return c, nil
	}
	if c.Cut = len(e.Cut) > 0; c.Cut {
		c.Fields = append(c.Fields, "cut", strconv.Itoa(e.Round)+" "+strings.Join(e.Cut, " "))
	}
	drop(&c, dropRound(e.Round, usual().KeepRounds))
	return c, nil
}

// avoided is to whom the task is left: no longer than a worker does that.
func (e *RoundEnd) avoided(now statemachine.Time) []string {
	text, to, ok := strings.Cut(e.Avoid, " /")
	till, err := statemachine.ParseTime(text)
	if !ok || err != nil {
		return nil
	}
	return []string{avoidField, min(till, now.Add(timing.FromStd(goneWait))).Text() + " /" + oneLine(to)}
}
