package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// FollowOptions say what [Manager.Follow] follows.
type FollowOptions struct {
	// Stderr is followed instead of stdout.
	Stderr bool
	// OneRound is followed and none after it; it must be the present one, whose number is Round.
	OneRound bool
	Round    int
}

// Output is a piece of what a program writes, or what a reader has to know meanwhile.
type Output struct {
	Round int
	// LeftOut is how many bytes of the program are missing between the piece before and Text.
	LeftOut int64
	Text    string
	// News is empty in pieces.
	News OutputNews
	// State is that of a task that waits; Err says that Redis is away.
	State statemachine.State
	Err   error
}

// OutputNews is what [Manager.Follow] tells beside output.
type OutputNews string

// The news of output.
const (
	OutputWaits    OutputNews = "waiting"  // the round has not begun
	OutputNotRun   OutputNews = "not run"  // the round is over and was not run
	OutputDropped  OutputNews = "dropped"  // the round is over, and its record is kept no longer
	OutputOver     OutputNews = "over"     // the round writes nothing more
	OutputReopened OutputNews = "reopened" // the task was opened again; the next round follows
	OutputAway     OutputNews = "away"     // Redis does not answer, and is asked again
	OutputBack     OutputNews = "back"     // Redis answers again
)

// Follow yields what the rounds of a task write while they write it, from the beginning of the present one until the task has
// ended: each byte at most once, in order. It outlives outages of Redis. The error matches [task.ErrNoRound] if the one round asked
// for is not the present one, and is the cause of the context where that has ended.
func (m *Manager) Follow(ctx context.Context, id int64, opt FollowOptions) iter.Seq2[Output, error] {
	return func(yield func(Output, error) bool) {
		f := &follower{m: m, id: id, name: outputStream, only: -1}
		if opt.OneRound {
			f.only = opt.Round
		}
		if opt.Stderr {
			f.name = errorStream
		}
		f.emit = func(o Output) error {
			if !yield(o, nil) {
				return errEnough
			}
			return nil
		}
		if err := f.follow(ctx); err != nil && !errors.Is(err, errEnough) {
			yield(Output{}, err)
		}
	}
}

// The two streams of a program, by the fields of their records.
const (
	outputStream = "output"
	errorStream  = "error"
)

// The rhythm of following: the worker is asked again before the last request is
// forgotten, and the task is looked at whenever a wait for output is over.
const (
	followFor   = 15 * time.Second
	followAgain = 5 * time.Second
	chunkWait   = 500 * time.Millisecond
	// fromStart is how long the beginning of a round is waited for, where only
	// what a reader before us had asked for is there yet.
	fromStart = 2 * time.Second
)

type follower struct {
	m      *Manager
	emit   func(Output) error
	id     int64
	name   string    // of the stream
	only   int       // the round asked for, or -1
	lost   bool      // Redis is away
	asked  time.Time // when the worker was asked last
	hold   time.Time // until when the beginning is waited for
	after  string    // position in the chunks
	waits  []tasks.Chunk
	waited bool // it was said that the round has not begun
	births *tasks.Births
}

// glance is what a follower needs to know of the task.
type glance struct {
	state statemachine.State
	round int
}

func (g glance) begun(n int) bool {
	return g.round > n || g.round == n && g.state != statemachine.Open && g.state != statemachine.Blocked
}

func (g glance) over(n int) bool {
	return g.begun(n) && (g.round > n || g.state != statemachine.Running)
}

func (f *follower) follow(ctx context.Context) error {
	var err error
	if f.births, err = f.m.store.Births(ctx); err != nil {
		return err
	}
	g, err := f.look(ctx)
	if err != nil {
		return err
	}
	if f.only >= 0 && f.only != g.round {
		return &otherRoundError{id: f.id, asked: f.only, present: g.round}
	}
	return f.rounds(ctx, g)
}

type otherRoundError struct {
	id             int64
	asked, present int
}

// Error names the round asked for, and the present one.
func (e *otherRoundError) Error() string {
	return fmt.Sprintf("round %d: task %d is in round %d; only that can be followed", e.asked, e.id, e.present)
}

// Unwrap returns task.ErrNoRound.
func (e *otherRoundError) Unwrap() error { return task.ErrNoRound }

func (f *follower) rounds(ctx context.Context, g glance) error {
	for n := g.round; ; n++ {
		if err := f.round(ctx, n); err != nil {
			return err
		}
		g, err := f.settled(ctx, n)
		if err != nil || f.only >= 0 || g.round == n {
			return err
		}
		if err := f.emit(Output{Round: n, News: OutputReopened}); err != nil {
			return err
		}
	}
}

// round emits what one round writes, to its end.
func (f *follower) round(ctx context.Context, n int) error {
	out := &stream{round: n, emit: f.emit}
	for runs := false; ; {
		g, err := f.look(ctx)
		if err != nil {
			return err
		}
		if g.over(n) {
			return f.finish(ctx, out, n)
		}
		if err := f.sayWaiting(g, n); err != nil {
			return err
		}
		if g.begun(n) && !runs {
			runs, f.asked = true, time.Time{} // now there is a worker to be asked
			f.hold = time.Now().Add(fromStart)
		}
		if err := f.request(ctx); err != nil {
			return err
		}
		if err := f.chunks(ctx, out, n, chunkWait); err != nil {
			return err
		}
	}
}

// finish emits what came at the very end, and then the rest from the record.
func (f *follower) finish(ctx context.Context, out *stream, n int) error {
	f.hold = time.Now().Add(time.Hour) // the record has the beginning
	for before := "-"; before != f.after; {
		before = f.after
		if err := f.chunks(ctx, out, n, time.Millisecond); err != nil {
			return err
		}
	}
	names := []string{outputStream, errorStream, "stderr", "output_bytes", "error_bytes", "dropped", "running"}
	for i, name := range names {
		names[i] = statemachine.RoundField(n, name)
	}
	fields, err := f.fields(ctx, names...)
	if err != nil {
		return err
	}
	get := func(name string) string { return fields[statemachine.RoundField(n, name)] }
	switch {
	case get("running") == "":
		err = f.emit(Output{Round: n, News: OutputNotRun})
	case get("dropped") != "":
		err = f.emit(Output{Round: n, News: OutputDropped})
	}
	if err != nil {
		return err
	}
	return out.end(f.record(get), f.held(n)...)
}

// record is the stream as the worker has recorded it.
func (f *follower) record(get func(string) string) record {
	text := get(f.name)
	if text == "" && f.name == errorStream {
		text = get("stderr") // with fail_on = exit that is no error
	}
	size, err := strconv.ParseInt(get(f.name+"_bytes"), 10, 64)
	if err != nil {
		size = -1
	}
	return record{text: text, size: size}
}

// settled waits until it is known whether there will be another round than n.
func (f *follower) settled(ctx context.Context, n int) (glance, error) {
	for {
		g, err := f.look(ctx)
		if err != nil || g.round > n || g.state.Terminal() || f.only >= 0 {
			return g, err
		}
		if err := f.chunks(ctx, nil, n, chunkWait); err != nil {
			return g, err
		}
	}
}

// sayWaiting tells, once, that there is nothing to write yet.
func (f *follower) sayWaiting(g glance, n int) error {
	if g.begun(n) || f.waited {
		return nil
	}
	f.waited = true
	return f.emit(Output{Round: n, News: OutputWaits, State: g.state})
}

// chunks emits what has come for round n, waiting at most d for it, and keeps
// what is of later rounds. Without out, what is of round n is passed over.
func (f *follower) chunks(ctx context.Context, out *stream, n int, d time.Duration) error {
	err := f.untilAnswered(ctx, func() error {
		found, after, err := f.m.store.Chunks(ctx, f.id, f.after, d)
		if err == nil {
			f.after, f.waits = after, append(f.waits, found...)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(f.waits, func(a, b tasks.Chunk) int {
		return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Offset, b.Offset))
	})
	for i, c := range f.waits {
		if c.Round > n {
			f.waits = f.waits[i:]
			return nil
		}
		if out == nil || c.Round != n || c.Stream != f.name {
			continue
		}
		if out.at == 0 && c.Offset > 0 && time.Now().Before(f.hold) {
			f.waits = f.waits[i:]
			return nil
		}
		if err := out.put(c.Offset, string(c.Data)); err != nil {
			return err
		}
	}
	f.waits = nil
	return nil
}

// held are the parts of round n that wait for its beginning.
func (f *follower) held(n int) []part {
	var parts []part
	for _, c := range f.waits {
		if c.Round == n && c.Stream == f.name {
			parts = append(parts, part{c.Offset, string(c.Data)})
		}
	}
	return parts
}

// request asks the worker for what the program writes, now and then.
func (f *follower) request(ctx context.Context) error {
	if time.Since(f.asked) < followAgain {
		return nil
	}
	err := f.untilAnswered(ctx, func() error { return f.m.store.Follow(ctx, f.id, followFor, f.asked.IsZero()) })
	if err == nil {
		f.asked = time.Now()
	}
	return err
}

func (f *follower) look(ctx context.Context) (glance, error) {
	fields, err := f.fields(ctx, "round")
	if err != nil {
		return glance{}, err
	}
	g := glance{state: statemachine.State(fields["state"])}
	if g.round, err = strconv.Atoi(fields["round"]); err != nil || !g.state.Valid() {
		return g, fmt.Errorf("task %d: %w", f.id, task.ErrDamaged)
	}
	return g, nil
}

// fields reads fields of the task, as long as it is the same task.
func (f *follower) fields(ctx context.Context, names ...string) (fields map[string]string, err error) {
	err = f.untilAnswered(ctx, func() error {
		for {
			found, err := f.m.store.Fields(ctx, []int64{f.id}, tasks.BirthFields(names...)...)
			if err == nil {
				err = f.births.Check(ctx, []int64{f.id}, found)
			}
			if err != nil {
				return err
			}
			if fields = found[0]; fields != nil {
				return nil
			}
			t, err := f.m.store.Task(ctx, f.id)
			if err == nil {
				err = t.Err
			}
			if err != nil {
				return err
			} // else it has just been written
		}
	})
	return fields, err
}

// untilAnswered calls until Redis answers. It tells once that Redis is away, and once that it is back.
func (f *follower) untilAnswered(ctx context.Context, call func() error) error {
	for {
		err := call()
		switch {
		case err == nil && f.lost:
			f.lost = false
			return f.emit(Output{News: OutputBack})
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, task.ErrUnreachable):
			return err
		case !f.lost:
			f.lost = true
			if err := f.emit(Output{News: OutputAway, Err: err}); err != nil {
				return err
			}
		}
		f.m.wait(ctx, chunkWait)
	}
}

// stream puts together what one round writes, from parts that may overlap, come
// twice, or leave something out between them.
type stream struct {
	round int
	emit  func(Output) error
	// at is how many bytes of the program were emitted or left out so far.
	at int64
}

// put emits what is new of a part that begins offset bytes into the stream.
func (s *stream) put(offset int64, data string) error {
	missing := max(0, offset-s.at)
	known := s.at + missing - offset
	if known >= int64(len(data)) {
		if missing == 0 {
			return nil
		}
		known = int64(len(data))
	}
	s.at = max(s.at, offset) + int64(len(data)) - known
	return s.emit(Output{Round: s.round, LeftOut: missing, Text: data[known:]})
}

// end emits what is left of the record of the round, and of parts that came
// while it ran.
func (s *stream) end(r record, more ...part) error {
	parts := append(r.parts(), more...)
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.offset, b.offset) })
	parts = append(parts, part{r.size, ""}) // of a record that somebody else has cut
	for _, p := range parts {
		if err := s.put(p.offset, p.data); err != nil {
			return err
		}
	}
	return s.emit(Output{Round: s.round, News: OutputOver})
}

// record is what Redis holds of a stream once the round has ended.
type record struct {
	text string
	// size is the number of bytes the program wrote where some of them were left
	// out of text, else -1.
	size int64
}

type part struct {
	offset int64
	data   string
}

var leftOut = regexp.MustCompile(`\n\[tdf: (\d{1,18}) bytes left out\]\n`)

// parts takes a record apart at the marker between head and tail. The program
// may have written such a line too: the marker is the one with which the sizes
// add up. What follows the tail, in a record of stderr, is TDF's own.
func (r record) parts() []part {
	if r.size < 0 {
		return []part{{0, r.text}}
	}
	var near []part
	for _, m := range leftOut.FindAllStringSubmatchIndex(r.text, -1) {
		missing, err := strconv.ParseInt(r.text[m[2]:m[3]], 10, 64)
		head, tail := int64(m[0]), r.text[m[1]:]
		switch end := head + missing + int64(len(tail)); {
		case err != nil || head+missing > r.size || end < r.size:
		case end == r.size:
			return []part{{0, r.text[:head]}, {head + missing, tail}}
		case near == nil:
			near = []part{{0, r.text[:head]}, {head + missing, tail}}
		}
	}
	if near != nil {
		return near
	}
	return []part{{0, r.text}}
}
