package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func (a *api) events() {
	add(a, operation{
		method: http.MethodGet, path: "/events", id: "follow-events", tag: "events", role: task.TokenRead,
		does: "Follow the events of all tasks as they happen", detail: followHelp, change: a.describeStream,
	}, a.follow)
}

const followHelp = "The answer is a stream of server-sent events, which does not end by itself. Their id is the number of the event that " +
	"was read last, also where a filter leaves events out; a client that sends it as Last-Event-ID goes on there and misses nothing. Where " +
	"events may be missing, because Redis keeps them no longer or has lost them, a message gap comes: read the tasks anew. While nothing " +
	"happens a comment comes every 15 s. A client that reads nothing for 10 s is cut off. A stream ends when the server stops, and within a " +
	"minute after its token ceases to be valid."

// followIn says which events are asked for.
type followIn struct {
	Last  eventNumber `header:"Last-Event-ID" minimum:"0" doc:"Go on after this event; it counts more than after."`
	After eventNumber `query:"after" minimum:"0" doc:"Go on after this event; 0 for all that Redis keeps. Default: what happens from now on."`
	Task  []int64     `query:"task" minimum:"1" maxItems:"1000" doc:"Only events of the tasks with these ids." example:"[7,8]"`
	To    []stateName `query:"to" doc:"Only events that bring a task into one of these states." example:"[\"failed\"]"`
}

// wants reports whether an event is one of those. One that cannot be read is left out, as the history of its task does.
func (in *followIn) wants(e *task.Event) bool {
	return e.Err == nil && (in.Task == nil || slices.Contains(in.Task, e.ID)) && (in.To == nil || slices.Contains(in.To, stateName(e.To)))
}

// begin is the event after which the stream begins.
func (in *followIn) begin(ctx context.Context, m *manager.Manager) (int64, error) {
	for _, n := range []eventNumber{in.Last, in.After} {
		if n.given {
			return n.N, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return m.NewestEvent(ctx)
}

// eventNumber is the number of an event that a request may have.
type eventNumber struct {
	N     int64
	given bool
}

// Schema implements [huma.SchemaProvider].
func (*eventNumber) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
}

// Receiver implements [huma.ParamWrapper].
func (n *eventNumber) Receiver() reflect.Value { return reflect.ValueOf(n).Elem().Field(0) }

// OnParamSet implements [huma.ParamReactor].
func (n *eventNumber) OnParamSet(given bool, _ any) { n.given = given }

// stateName is a state in a request.
type stateName statemachine.State

// Schema implements [huma.SchemaProvider].
func (stateName) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, state := range statemachine.States() {
		s.Enum = append(s.Enum, string(state))
	}
	s.PrecomputeMessages()
	return s
}

// eventGap is a [manager.GapError].
type eventGap struct {
	After  int64 `json:"after" doc:"The event after which some may be missing."`
	Newest int64 `json:"newest" doc:"The event after which the stream goes on; 0 for the first."`
}

const (
	eventStream = "text/event-stream"
	// The names of messages.
	messageTask, messageGap = "task", "gap"
)

// describeStream describes the messages, which JSON schemas can do in part only: they are lines of text.
func (a *api) describeStream(op *huma.Operation) {
	message := func(name, doc string, data reflect.Type) *huma.Schema {
		return &huma.Schema{
			Type: huma.TypeObject, Title: name, Description: doc, Required: []string{"id", "event", "data"},
			Properties: map[string]*huma.Schema{
				"id":    {Type: huma.TypeInteger, Description: "What Last-Event-ID is to be."},
				"event": {Type: huma.TypeString, Enum: []any{name}, Description: "The kind of message."},
				"data":  a.huma.OpenAPI().Components.Schemas.Schema(data, true, ""),
			},
		}
	}
	op.Responses = map[string]*huma.Response{"200": {
		Description: "Messages, until the client ends the stream.",
		Content: map[string]*huma.MediaType{eventStream: {Schema: &huma.Schema{
			Type: huma.TypeArray, Description: "Server-sent events, each with its data in one line.",
			Items: &huma.Schema{OneOf: []*huma.Schema{
				message(messageTask, "A step of a task.", reflect.TypeFor[answer.Event]()),
				message(messageGap, "Events may be missing.", reflect.TypeFor[eventGap]()),
			}},
		}}},
	}}
}

// follow answers with a stream.
func (a *api) follow(ctx context.Context, in *followIn) (*huma.StreamResponse, error) {
	after, err := in.begin(ctx, a.m)
	if err != nil {
		return nil, err
	}
	if err := a.streams.events.enter("streams of events"); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(to huma.Context) {
		defer a.streams.events.leave()
		r, w := humago.Unwrap(to)
		w.Header().Set("Content-Type", eventStream)
		w.Header().Set("X-Accel-Buffering", "no")
		w.Header().Set("Connection", "close") // its deadlines are not those of another request
		if r.Method != http.MethodHead {
			a.stream(ctx, w, in, after)
		}
	}}, nil
}

// stream writes a stream until it ends.
func (a *api) stream(ctx context.Context, w http.ResponseWriter, in *followIn, after int64) {
	ctx, end := a.lasting(ctx)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer end()
	read := make(chan occurrence, 64)
	reading.Go(func() {
		for e, err := range a.m.Events(ctx, after) {
			select {
			case read <- occurrence{e, err}:
			case <-ctx.Done():
				return
			}
		}
	})
	s := &stream{
		in: in, w: a.streams.pieces(w), silence: a.streams.silence, silent: time.NewTimer(a.streams.silence), seen: after, told: after,
	}
	defer s.end()
	err := pass(ctx, s, read)
	if err != nil && (ctx.Err() == nil || errors.Is(err, os.ErrDeadlineExceeded)) { // else the client has ended it
		c := callerOf(ctx)
		a.log.Warn("a stream of events has ended", "request", c.request, "token", c.Name, "from", c.from, "error", err)
	}
}

// occurrence is what [manager.Manager.Events] gives.
type occurrence struct {
	event task.Event
	err   error
}

// pass writes what is read, until there is no use in it.
func pass(ctx context.Context, s *stream, read <-chan occurrence) error {
	err := s.send(fmt.Appendf(nil, "id: %d\n\n", s.seen)) // what to go on after if nothing happens
	for err == nil {
		select {
		case <-ctx.Done():
			return nil
		case o := <-read:
			err = s.tell(o, read)
		case <-s.silent.C:
			err = s.send(s.stillHere())
		}
	}
	return err
}

// stream is an answer that goes on.
type stream struct {
	in *followIn
	w  *pieces
	// silent fires when nothing was written for silence.
	silence time.Duration
	silent  *time.Timer
	// seen is the event that was read last, told the one that the client knows of.
	seen, told int64
}

// tell writes what was read, and what else is there already.
func (s *stream) tell(o occurrence, read <-chan occurrence) error {
	var text bytes.Buffer
	err := s.add(&text, &o)
	for n := len(read); n > 0 && err == nil; n-- {
		o = <-read
		err = s.add(&text, &o)
	}
	return errors.Join(err, s.send(text.Bytes()))
}

// add makes the message of what was read, if it is one for the client.
func (s *stream) add(text *bytes.Buffer, o *occurrence) error {
	gap, lost := errors.AsType[*manager.GapError](o.err)
	switch {
	case lost:
		s.seen = gap.Newest
		return s.message(text, messageGap, eventGap{After: gap.After, Newest: gap.Newest})
	case o.err != nil:
		return o.err
	}
	if s.seen = o.event.Seq; !s.in.wants(&o.event) {
		return nil
	}
	return s.message(text, messageTask, answer.Event{Event: o.event, At: task.Stamp(o.event.At).Text()})
}

func (s *stream) message(text *bytes.Buffer, name string, data any) error {
	s.told = s.seen
	fmt.Fprintf(text, "id: %d\nevent: %s\ndata: ", s.seen, name)
	line := json.NewEncoder(text)
	line.SetEscapeHTML(false)
	if err := line.Encode(data); err != nil {
		return fmt.Errorf("event %d: %w", s.seen, err)
	}
	text.WriteByte('\n')
	return nil
}

// stillHere is a comment, with the id of the events that were left out since the last message.
func (s *stream) stillHere() []byte {
	if s.told == s.seen {
		return []byte(": still here\n\n")
	}
	s.told = s.seen
	return fmt.Appendf(nil, ": still here\nid: %d\n\n", s.seen)
}

// send writes text, if there is any. The error is that of a client that is gone, or does not read.
func (s *stream) send(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	s.silent.Reset(s.silence)
	return s.w.send(text)
}

// end leaves the rest, which the server writes, its time.
func (s *stream) end() {
	s.silent.Stop()
	s.w.more()
}
