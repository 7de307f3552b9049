package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/control"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Ended is how a round of a worker behind a [Gateway] ended.
type Ended string

// How a round ended.
const (
	// EndedItself means that what ran has ended by itself, or could not be run.
	EndedItself Ended = ""
	// EndedOverdue means that the worker ended it because its time was over.
	EndedOverdue Ended = "timed_out"
	// EndedCancelled means that the worker ended it because the task was cancelled.
	EndedCancelled Ended = "cancelled"
	// EndedHandedBack means that the worker gives the task back, at no cost to it.
	EndedHandedBack Ended = "handed_back"
)

// RoundRef names a round that a worker holds, as it was told when it got it.
type RoundRef struct {
	Task  int64  `json:"task" minimum:"1" doc:"Id of the task."`
	Round int    `json:"round" minimum:"0" doc:"Number of the round."`
	Claim string `json:"claim" minLength:"1" maxLength:"200" doc:"What came with the task: it shows that the worker holds the round."`
}

func (r *RoundRef) task() *statemachine.Task {
	return &statemachine.Task{ID: r.Task, State: statemachine.Running, Round: r.Round, Current: statemachine.Round{Claim: r.Claim}}
}

// RoundEnd is the report of a round. Whether it is a success follows from it as the task's fail_on says.
type RoundEnd struct {
	RoundRef

	// Ended is how.
	Ended Ended `json:"ended,omitempty" enum:",timed_out,cancelled,handed_back" doc:"What the worker did; leave it out if it ended by itself."`
	// ExitCode is nil, and Signal 0, for what never ran.
	ExitCode *int `json:"exit_code,omitempty" minimum:"0" maximum:"255" doc:"Exit code; leave it out for what never ran, or died by a signal."`
	Signal   int  `json:"signal,omitempty" minimum:"1" maximum:"64" doc:"Number of the signal that it died by."`
	// Output and Error are what it wrote, as bytes.
	Output []byte `json:"output,omitempty" doc:"What it wrote to stdout, in base64."`
	Error  []byte `json:"error,omitempty" doc:"What it wrote to stderr, in base64."`
	// OutputBytes and ErrorBytes are how many bytes it wrote, if that is more than is said here.
	OutputBytes int64 `json:"output_bytes,omitempty" minimum:"0" doc:"How many bytes it wrote to stdout, if output is not all of it."`
	ErrorBytes  int64 `json:"error_bytes,omitempty" minimum:"0" doc:"How many bytes it wrote to stderr, if error is not all of it."`
	// Result is what other tasks get of it; by default its output.
	Result *string `json:"result,omitempty" maxLength:"65536" doc:"What tasks get that need this one; by default its output."`
	// Why is what the worker has to say itself: for what ended by itself it makes the round a failure.
	Why string `json:"why,omitempty" maxLength:"10000" doc:"What the worker itself has to say; it makes the round a failure."`
	// Class is what went wrong, of a failure; by default program.
	Class statemachine.Class `json:"class,omitempty" enum:"program,fetch,host,memory,disk,infrastructure" doc:"What went wrong."`
	// RetryAfter is the least time to the next round, if there is one; 0 for that of the task.
	RetryAfter task.Seconds `json:"retry_after,omitempty" doc:"Least time until the next round, in seconds."`
	// ETA is when the work wants to be done again (see package series).
	ETA time.Time `json:"eta,omitzero" doc:"When it wants to run again, for a series."`
	// Status is what the program itself says became of it, as Disbatch numbers it: 1 for well; 2 or more make the round a failure.
	Status int `json:"status,omitempty" minimum:"1" maximum:"2147483647" doc:"Status that the program reports: 1, or from 2 on with errors."`
	// Program is the SHA-256 of the program that ran, as fetched.
	Program string `json:"program_sha256,omitempty" pattern:"^[0-9a-f]{64}$" doc:"Hash of the program that ran, in hex."`
	// UserTime and SystemTime are CPU times, MaxMemory is in bytes.
	UserTime   task.Seconds `json:"user_time,omitempty" doc:"CPU seconds."`
	SystemTime task.Seconds `json:"system_time,omitempty" doc:"CPU seconds of the system."`
	MaxMemory  int64        `json:"max_memory,omitempty" minimum:"0" doc:"Most memory, in bytes."`
	// Meta are attributes that the task is to have.
	Meta map[string]string `json:"meta,omitempty" doc:"Attributes that the task is to have."`

	RoundRecord

	whole bool // the turn is: see gateway_record.go
}

// usual are the settings that hold for workers behind a gateway.
var usual = sync.OnceValue(func() *config.Worker { return &config.Defaults().Worker })

// check returns a *statemachine.FieldError about what cannot be.
func (e *RoundEnd) check() error {
	most := int(usual().OutputLimit)
	bad := func(field, value, want string) error {
		return &statemachine.FieldError{Field: field, Value: value, Want: want}
	}
	switch {
	case e.ExitCode != nil && e.Signal != 0:
		return bad("signal", strconv.Itoa(e.Signal), "used with exit_code; leave out one of them")
	case e.Ended == EndedItself && e.ExitCode == nil && e.Signal == 0 && e.Why == "":
		return bad("exit_code", "", "there; give it, signal, or why nothing ran")
	case len(e.Output) > most:
		return tooLong("output", len(e.Output), most)
	case len(e.Error) > most:
		return tooLong("error", len(e.Error), most)
	case e.OutputBytes != 0 && e.OutputBytes < int64(len(e.Output)):
		return bad("output_bytes", strconv.FormatInt(e.OutputBytes, 10), "as many as output has, or more")
	case e.ErrorBytes != 0 && e.ErrorBytes < int64(len(e.Error)):
		return bad("error_bytes", strconv.FormatInt(e.ErrorBytes, 10), "as many as error has, or more")
	case e.Result != nil && len(*e.Result) > control.MaxResult:
		return bad("result", fmt.Sprintf("%d bytes", len(*e.Result)), fmt.Sprintf("at most %d bytes", control.MaxResult))
	}
	return task.CheckMeta(e.Meta)
}

func tooLong(stream string, has, most int) error {
	return &statemachine.FieldError{
		Field: stream, Value: fmt.Sprintf("%d bytes", has),
		Want: fmt.Sprintf("at most %d bytes; leave out the middle, and say %s_bytes", most, stream),
	}
}

// facts are what is known of a round that a worker speaks of.
type facts struct {
	fields map[string]string
	err    error
}

// judged are the fields of a task that the report of a round is judged by.
var judged = []string{"fail_on", "on_cut", "feeds", "return"}

// facts reads the rounds that a worker speaks of. The error of one matches statemachine.ErrStale if it was never the worker's.
func (g *Gateway) facts(ctx context.Context, name string, rounds ...RoundRef) ([]facts, error) {
	ids, names := make([]int64, len(rounds)), judged
	for i, r := range rounds {
		ids[i] = r.Task
		if name := statemachine.RoundField(r.Round, "worker"); !slices.Contains(names, name) {
			names = append(slices.Clip(names), name)
		}
	}
	found, err := g.site.Fields(ctx, ids, names...)
	if err != nil {
		return nil, err
	}
	all := make([]facts, len(rounds))
	for i, r := range rounds {
		all[i].fields = found[i]
		if found[i][statemachine.RoundField(r.Round, "worker")] != name {
			all[i].err = fmt.Errorf("task %d, round %d: worker %s did not claim it: %w", r.Task, r.Round, name, statemachine.ErrStale)
		}
	}
	return all, nil
}

// ending is what a worker of this host would say of such an end.
func (e *RoundEnd) ending(fields map[string]string) *ending {
	res := result{Result: shim.Result{
		Started: e.ExitCode != nil || e.Signal != 0, ExitCode: -1, Signal: syscall.Signal(e.Signal), Cause: shim.Ended,
		UserTime: time.Duration(e.UserTime), SystemTime: time.Duration(e.SystemTime), MaxMemory: e.MaxMemory,
	}}
	if e.ExitCode != nil {
		res.ExitCode = *e.ExitCode
	}
	res.stdout, res.stderr, res.brought = captured(e.Output, e.OutputBytes), captured(e.Error, e.ErrorBytes), e.Result
	res.program, res.status = e.Program, e.Status
	end := &ending{result: res, trouble: e.Why, class: e.Class}
	if end.class == "" {
		end.class = statemachine.ClassProgram
	}
	switch e.Ended {
	case EndedOverdue:
		end.event, end.class, end.trouble = statemachine.StopOverdue, statemachine.ClassTime, withLine(e.Why, stoppedOverdue)
	case EndedCancelled:
		end.event, end.trouble = statemachine.Terminate, withLine(e.Why, stoppedCancelled)
	case EndedHandedBack:
		end.event, end.why, end.trouble = statemachine.HandBack, errors.New(e.Why), ""
	default:
		end.event = statemachine.Report
		end.refuseLoss(fields)
	}
	return end
}

// captured is a stream of which size bytes were written; 0 for those that are there.
func captured(data []byte, size int64) capture.Captured {
	return capture.Captured{Data: data, Size: max(size, int64(len(data))), Truncated: size > int64(len(data))}
}

// refuseLoss makes a success a failure if a part is lost that somebody relies on.
func (e *ending) refuseLoss(fields map[string]string) {
	res := &e.result
	if text, _ := e.errorText(fields["fail_on"]); text != "" {
		return
	}
	switch {
	case fields["return"] != "":
		e.fails(nil, &ownError{"the task returns files, and a worker over HTTP returns none: let other workers run it, for instance by a label"})
	case res.forbidden(fields["on_cut"]):
		e.fails(nil, &cutError{int64(len(res.stdout.Data)), "its worker has sent a part of it"})
	case fields["feeds"] == "1" && res.partial():
		e.fails(nil, &cutError{int64(len(res.stdout.Data)), ""})
	}
}

// decide is the move of t, as it was in that round, with the record of the round.
func (e *RoundEnd) decide(name string, t *Former, fields map[string]string, now statemachine.Time) (Commit, error) {
	if e.whole {
		return e.decideRecord(name, t, now)
	}
	end := e.ending(fields)
	text, aside := end.errorText(fields["fail_on"])
	o := statemachine.Occurrence{
		Event: end.event, Actor: statemachine.Worker, Claim: e.Claim, Round: e.Round, Failed: text != "", Random: rand.Float64(),
	}
	if o.Failed {
		o.Class = end.class
	}
	if e.RetryAfter > 0 {
		o.Retry = now.Add(timing.FromStd(time.Duration(e.RetryAfter)))
	}
	o.ExitCode, o.HasExit = end.result.exit()
	if err := e.checkStop(t); err != nil {
		return Commit{}, err
	}
	move, err := statemachine.Decide(&t.Task, o, now)
	if err != nil {
		return Commit{}, err
	}
	c := Commit{Move: move, Writer: name, Bucket: t.Bucket, Node: end.news(text != ""), Meta: e.Meta}
	if move.Event == statemachine.HandBack && move.NextRound {
		c.Lines = []Line{{At: now, Text: fmt.Sprintf("handing back task %d: %s", e.Task, e.Why)}}
		return c, nil
	}
	c.Fields, c.Cut = end.fields(e.Round, text, aside)
	if move.Failed && move.Retry != 0 {
		c.Fields = append(c.Fields, statemachine.RoundField(e.Round, "retry"), move.Retry.Text())
	}
	if !e.ETA.IsZero() {
		c.Fields = append(c.Fields, statemachine.RoundField(e.Round, "eta"), task.Stamp(e.ETA).Text())
	}
	drop(&c, dropRound(e.Round, usual().KeepRounds))
	return c, nil
}

// checkStop refuses a stop that nobody has asked for.
func (e *RoundEnd) checkStop(t *Former) error {
	if e.Ended != EndedCancelled || t.StopAsked {
		return nil
	}
	return &statemachine.FieldError{
		Field: "ended", Value: string(e.Ended), Want: "right: nobody has cancelled the task; handed_back gives it to another worker",
	}
}

// as is the task as it was in the round, as far as that is known: the fence tells whether it still is so.
func (r *RoundRef) as(t *Former) *Former {
	was := *t
	if t.State != statemachine.Running || t.Round != r.Round || t.Current.Claim != r.Claim {
		was.State, was.Round, was.Current = statemachine.Running, r.Round, statemachine.Round{Claim: r.Claim}
	}
	return &was
}

// RoundNews is what a worker tells of a round that runs.
type RoundNews struct {
	RoundRef

	Incarnation int64 `json:"incarnation" minimum:"1" doc:"Number of the session."`
	// Progress is from 0 to 1; nil for no news of that.
	Progress *float64 `json:"progress,omitempty" minimum:"0" maximum:"1" doc:"How far it has come, from 0 to 1."`
	// Text says what it does.
	Text string `json:"text,omitempty" maxLength:"1000" doc:"What it does just now."`
	// Log are lines for the log of the task, and Lines those that have a time.
	Log   []string    `json:"log,omitempty" maxItems:"100" doc:"Lines for the log of the task."`
	Lines []roundLine `json:"lines,omitempty" maxItems:"1000" doc:"The same with their times."`
	// Meta are attributes that the task is to have; an empty text removes one.
	Meta map[string]string `json:"meta,omitempty" doc:"Attributes that the task is to have; an empty text removes one."`
	// Output and Error are what it has written behind the offsets, for those who follow the task.
	Output       []byte `json:"output,omitempty" doc:"A part of what it writes to stdout, in base64, for those who follow it."`
	OutputOffset int64  `json:"output_offset,omitempty" minimum:"0" doc:"How many bytes it wrote to stdout before that."`
	Error        []byte `json:"error,omitempty" doc:"A part of what it writes to stderr, in base64."`
	ErrorOffset  int64  `json:"error_offset,omitempty" minimum:"0" doc:"How many bytes it wrote to stderr before that."`
}

func (n *RoundNews) check() error {
	for _, s := range []struct {
		field string
		part  []byte
	}{{"output", n.Output}, {"error", n.Error}} {
		if len(s.part) > MaxChunk {
			return &statemachine.FieldError{
				Field: s.field, Value: fmt.Sprintf("%d bytes", len(s.part)), Want: fmt.Sprintf("at most %d bytes", MaxChunk),
			}
		}
	}
	return task.CheckMeta(n.Meta)
}

// news is what the site takes.
func (n *RoundNews) news(now statemachine.Time) News {
	news := News{Meta: n.Meta, Lines: linesOf(n.Lines)}
	for _, line := range n.Log {
		news.Lines = append(news.Lines, Line{At: now, Text: oneLine(line)})
	}
	if n.Progress != nil || n.Text != "" {
		news.Progress = &Progress{Part: -1, Text: n.Text}
		if n.Progress != nil {
			news.Progress.Part = *n.Progress
		}
	}
	for i, s := range []struct {
		part []byte
		at   int64
	}{{n.Output, n.OutputOffset}, {n.Error, n.ErrorOffset}} {
		if len(s.part) > 0 {
			news.Chunks = append(news.Chunks, Chunk{Stream: streamNames[i], Offset: s.at, Data: s.part})
		}
	}
	return news
}
