package tasks

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

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
