package tasks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// News is what a worker tells of a round that runs.
type News struct {
	// Lines are for the log of the task.
	Lines []Line
	// Progress is nil if there is none to tell.
	Progress *Progress
	// Meta are attributes that the task is to have, by their names; an empty text removes one.
	Meta map[string]string
	// Chunks are of what the program writes, while somebody follows the task; the
	// newest 64 are kept.
	Chunks []Chunk
}

// Tell records at once what worker tells of a task that it holds. It returns an
// error matching statemachine.ErrStale if the round is over.
func (s *Tasks) Tell(ctx context.Context, worker string, t *statemachine.Task, n News) error {
	if err := n.check(); err != nil {
		return err
	}
	if len(n.Lines) > 0 || n.Progress != nil {
		if err := s.note(ctx, worker, t, &n); err != nil {
			return err
		}
	}
	round := statemachine.Move{ID: t.ID, Round: t.Round, Claim: t.Current.Claim}
	if err := s.tellMeta(ctx, &round, n.Meta); err != nil || len(n.Chunks) == 0 {
		return err
	}
	return s.sendChunks(ctx, t, n.Chunks)
}

func (n *News) check() error {
	if far := n.Progress; far != nil && (far.Part > 1 || math.IsNaN(far.Part)) {
		return &statemachine.FieldError{
			Field: "progress", Value: strconv.FormatFloat(far.Part, 'g', -1, 64), Want: "a number from 0 to 1, or below 0 for none",
		}
	}
	return checkChunks(n.Chunks)
}

// note records lines and progress.
func (s *Tasks) note(ctx context.Context, worker string, t *statemachine.Task, n *News) error {
	texts := make([]string, len(n.Lines))
	for i, l := range n.Lines {
		texts[i] = formatLine(l, worker)
	}
	field, value := "", ""
	if n.Progress != nil {
		field, value = "progress", n.Progress.String()
	}
	v, err := s.Run(ctx, "note", conn.Subject{Task: t.ID},
		string(statemachine.Running), t.Round, t.Current.Claim, strings.Join(texts, "\n"), field, value)
	if err != nil {
		return err
	}
	if v == int64(-1) {
		return staleRound(t)
	}
	return nil
}

func staleRound(t *statemachine.Task) error {
	return fmt.Errorf("task %d, round %d: %w", t.ID, t.Round, statemachine.ErrStale)
}

// Chunk is a part of what a program writes while it runs.
type Chunk struct {
	// Round is set by [Tasks.Chunks]; what is sent belongs to the task's round.
	Round  int
	Stream string // "output" or "error"
	// Offset is the number of bytes the program wrote to the stream before Data.
	// A gap to the chunk before means that bytes were left out.
	Offset int64
	Data   []byte
}

// MaxChunk is the most bytes of one chunk.
const MaxChunk = 32 << 10

// liveChunks is how many chunks are kept for the readers of a task, liveTTL
// for how long after the last.
const (
	liveChunks = 64
	liveTTL    = 10 * time.Minute
)

// Follow asks the worker that runs the task to send what the program writes
// for d from now; repeat it to go on. A reader that begins gets what there is from
// the beginning, and readers that read already get it again. A task that does not run yet is followed
// from its start on. The error matches [task.ErrNoTask] if there is no such task.
func (s *Tasks) Follow(ctx context.Context, id int64, d time.Duration, begin bool) error {
	if d <= 0 {
		return fmt.Errorf("follow: for %s: want a time above 0", d)
	}
	v, err := s.Run(ctx, "follow", conn.Subject{Task: id}, id, d.Seconds(), string(statemachine.Running), conn.Flag(begin))
	if err != nil {
		return err
	}
	if v == int64(0) {
		return fmt.Errorf("task %d: %w", id, task.ErrNoTask)
	}
	return nil
}

// sendChunks hands on chunks of what the current round of a followed task
// writes.
func (s *Tasks) sendChunks(ctx context.Context, t *statemachine.Task, chunks []Chunk) error {
	if len(chunks) > liveChunks {
		chunks = chunks[len(chunks)-liveChunks:]
	}
	args := make([]any, 0, 5+3*len(chunks))
	args = append(args, string(statemachine.Running), t.Round, t.Current.Claim, liveChunks, int(liveTTL.Seconds()))
	for _, c := range chunks {
		args = append(args, c.Stream, c.Offset, c.Data)
	}
	v, err := s.Run(ctx, "chunks", conn.Subject{Task: t.ID}, args...)
	if err == nil && v == int64(-1) {
		return staleRound(t)
	}
	return err
}

func checkChunks(chunks []Chunk) error {
	for _, c := range chunks {
		if len(c.Data) > MaxChunk {
			return fmt.Errorf("chunk of %d bytes: want at most %d", len(c.Data), MaxChunk)
		}
	}
	return nil
}

// Chunks returns the chunks after the position, waiting at most d for one, and
// the new position; begin with "".
func (s *Tasks) Chunks(ctx context.Context, id int64, after string, d time.Duration) ([]Chunk, string, error) {
	from := after
	if from == "" {
		from = "0"
	}
	ctx, cancel := s.WhileBlocked(ctx, d)
	defer cancel()
	// Sent like this because the client's own method waits for a dead Redis ten
	// seconds longer than d.
	cmd := redis.NewXStreamSliceCmd(ctx, "xread", "count", liveChunks,
		"block", conn.Bounded(d).Milliseconds(), "streams", s.Keys.Live(id), from)
	err := s.Patient.Process(ctx, cmd)
	if conn.IsNil(err) {
		return nil, after, nil
	}
	if err != nil {
		return nil, after, s.Failed("chunks", err)
	}
	var chunks []Chunk
	for _, stream := range cmd.Val() {
		for _, entry := range stream.Messages {
			chunks, after = append(chunks, decodeChunk(entry.Values)), entry.ID
		}
	}
	return chunks, after, nil
}

func decodeChunk(values map[string]any) Chunk {
	get := func(field string) string {
		text, _ := values[field].(string)
		return text
	}
	c := Chunk{Stream: get("stream"), Data: []byte(get("data"))}
	c.Round, _ = strconv.Atoi(get("round"))
	c.Offset, _ = strconv.ParseInt(get("offset"), 10, 64)
	return c
}

// Progress is how far a program says it has come.
type Progress struct {
	// Part is from 0 to 1, negative if not given.
	Part float64
	Text string
}

// String is how the progress stands in the hash: "0.4 halfway".
func (far Progress) String() string {
	text := strings.Join(strings.Fields(far.Text), " ")
	if len(text) > maxProgress {
		text = strings.ToValidUTF8(text[:maxProgress], "")
	}
	if far.Part < 0 {
		return text
	}
	return strings.TrimSpace(strconv.FormatFloat(far.Part, 'f', -1, 64) + " " + text)
}

// maxProgress is how many bytes of a progress text are kept.
const maxProgress = 256

// MetaChange says which attributes of tasks are set.
type MetaChange struct {
	// Set has the texts by their names. An empty one removes the attribute; others stay as they are.
	Set map[string]string
	Note
}

// Note goes with changes that are no moves.
type Note struct {
	// Writer and Text are for the logs of the tasks that change; no line without a text.
	Writer, Text string
	// DryRun changes nothing.
	DryRun bool
}

// SetMeta sets attributes of up to [MaxMoves] tasks, in whichever state they are, each on its own. It returns their states, and what
// became of each: an error that matches [task.ErrDamaged], also if there is no such task, or is a [*statemachine.FieldError] if it would
// have too many.
func (s *Tasks) SetMeta(ctx context.Context, ids []int64, c MetaChange) ([]statemachine.State, []Outcome, error) {
	return s.setMeta(ctx, ids, &c, &statemachine.Move{})
}

// SetParams gives up to [MaxMoves] tasks that wait other parameters, each on its own; none of them for an empty text. It returns as
// SetMeta does; the error of a task that does not wait matches [task.ErrBegun].
func (s *Tasks) SetParams(ctx context.Context, ids []int64, params string, note Note) ([]statemachine.State, []Outcome, error) {
	waiting := statemachine.Waiting()
	args := append(make([]any, 0, 5+len(waiting)), params, conn.Flag(note.DryRun), writer(note.Writer), note.Text, len(waiting))
	for _, state := range waiting {
		args = append(args, string(state))
	}
	r, err := s.RunList(ctx, "params", s.subjects(ids), args...)
	if err != nil {
		return nil, nil, err
	}
	states, outcomes := changed(ids, r)
	return states, outcomes, nil
}

// subjects are the keys of tasks.
func (s *Tasks) subjects(ids []int64) (of conn.Subject) {
	for _, id := range ids {
		of.More = append(of.More, s.Keys.Task(id))
	}
	return of
}

// changed reads what became of each task, and its state.
func changed(ids []int64, r conn.Reply) (states []statemachine.State, outcomes []Outcome) {
	for i, id := range ids {
		states, outcomes = append(states, statemachine.State(r.Text(2*i+1))), append(outcomes, moveOutcome(id, r.Number(2*i)))
	}
	return states, outcomes
}

// setMeta does so for the worker that runs a task only, if round names a claim.
func (s *Tasks) setMeta(
	ctx context.Context, ids []int64, c *MetaChange, round *statemachine.Move,
) (states []statemachine.State, outcomes []Outcome, err error) {
	args := append(make([]any, 0, 8+2*len(c.Set)), string(statemachine.Running), round.Round, round.Claim, task.MaxMeta,
		conn.Flag(c.DryRun), writer(c.Writer), c.Text, 2*len(c.Set))
	for name, text := range c.Set {
		args = append(args, name, text)
	}
	r, err := s.RunList(ctx, "meta", s.subjects(ids), args...)
	if err != nil {
		return nil, nil, err
	}
	states, outcomes = changed(ids, r)
	return states, outcomes, nil
}

// tellMeta sets what a worker says of the attributes of a round that runs.
func (s *Tasks) tellMeta(ctx context.Context, round *statemachine.Move, set map[string]string) error {
	if len(set) == 0 {
		return nil
	}
	_, outcomes, err := s.setMeta(ctx, []int64{round.ID}, &MetaChange{Set: set}, round)
	if err != nil {
		return err
	}
	return outcomes[0].Err
}

// withMeta sets the attributes that come along with reports. What is refused stands in the log of the task, unless its round is over.
func (s *Tasks) withMeta(ctx context.Context, commits []Commit) ([]Commit, error) {
	if !slices.ContainsFunc(commits, func(o Commit) bool { return len(o.Meta) > 0 }) {
		return commits, nil
	}
	commits = slices.Clone(commits)
	for i := range commits {
		o := &commits[i]
		err := s.tellMeta(ctx, &o.Move, o.Meta)
		refused, ok := errors.AsType[*statemachine.FieldError](err)
		switch {
		case ok:
			at, _ := s.Now(ctx)
			o.Lines = append(slices.Clip(o.Lines), Line{At: at, Text: refused.Error()})
		case err != nil && !errors.Is(err, statemachine.ErrStale) && !errors.Is(err, task.ErrDamaged): // which the move meets as well
			return nil, err
		}
	}
	return commits, nil
}
