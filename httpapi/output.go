package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/ops/returned"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// sentOutputs names what is sent of tasks, where too many ask for that.
const sentOutputs = "streams of what tasks write and return"

// The media types of what tasks leave.
const (
	plainText   = "text/plain"
	packedFiles = "application/zstd"
)

func (a *api) outputs() {
	const tag = "tasks"
	for _, s := range [][3]string{
		{returned.Output, "Get what a round wrote to stdout, byte for byte", streamHelp},
		{returned.Error, "Get what a round wrote to stderr, byte for byte", errorHelp + streamHelp},
	} {
		add(a, operation{
			method: http.MethodGet, path: "/tasks/{id}/" + s[0], id: "get-task-" + s[0], tag: tag, role: task.TokenRead,
			does: s[1], detail: s[2], change: a.streaming(plainText),
		}, func(ctx context.Context, in *streamIn) (*huma.StreamResponse, error) {
			if in.Follow {
				return a.followOutput(ctx, in, s[0])
			}
			return a.output(ctx, in, s[0])
		})
	}
	add(a, operation{
		method: http.MethodGet, path: "/tasks/{id}/files", id: "get-task-files", tag: tag, role: task.TokenRead,
		does: "Get the files that a round has returned", change: a.streaming(packedFiles),
		detail: "They come as Redis keeps them: in a tar archive, compressed with zstd. " + rangesHelp,
	}, a.files)
}

const rangesHelp = "Ranges and conditions work as in RFC 9110; the ETag is the SHA-256 of what is sent."

const streamHelp = "Where only a part of it is kept, the header X-TDF-Cut names the stream, and X-TDF-Bytes says how much was written. " +
	rangesHelp + " What is followed has neither; where a program writes faster than its output can be sent, a line says how much was left out."

const errorHelp = "What TDF itself says of a failed round is there too, unless there was more than its record has. "

// streaming describes answers that are sent as they are, and may take long.
func (a *api) streaming(kind string) func(*huma.Operation) {
	return func(op *huma.Operation) {
		content := map[string]*huma.MediaType{kind: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
		problem := &huma.MediaType{Schema: a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[huma.ErrorModel](), true, "")}
		op.Responses = map[string]*huma.Response{
			"200":     {Description: "All of it", Content: content},
			"206":     {Description: "The ranges asked for", Content: content},
			"304":     {Description: "The client has it"},
			"default": {Description: "Error", Content: map[string]*huma.MediaType{"application/problem+json": problem}},
		}
	}
}

// roundIn names a round of a task.
type roundIn struct {
	ID    int64 `path:"id" minimum:"1" doc:"Id of a task."`
	Round int   `query:"round" minimum:"-1" default:"-1" doc:"Number of a round, from 0; -1 is the last one that a worker has begun."`
}

// streamIn names what a round has written, or what it and those after it write.
type streamIn struct {
	ID     int64 `path:"id" minimum:"1" doc:"Id of a task."`
	Round  int   `query:"round" minimum:"-1" default:"-1" doc:"As of files. With follow, the present one, which is followed to its end."`
	Follow bool  `query:"follow" doc:"Send what the program writes while it writes it, from the present round until the task has ended."`
}

// round finds a round.
func (a *api) round(ctx context.Context, id int64, number int) (*task.Round, error) {
	t, err := a.m.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	return returned.Round(t, number)
}

// output answers with what a round has written.
func (a *api) output(ctx context.Context, in *streamIn, stream string) (*huma.StreamResponse, error) {
	r, err := a.round(ctx, in.ID, in.Round)
	if err != nil {
		return nil, err
	}
	text, header := returned.Text(r, stream), streamHeader(in.ID, stream)
	if r.Dropped && text == "" {
		return nil, newProblem(http.StatusNotFound, returned.Dropped(in.ID, r.Number))
	}
	c, full, err := a.whole(ctx, in.ID, r, stream)
	if err != nil {
		return nil, err
	}
	if c == nil {
		c = &content{ReadSeeker: strings.NewReader(text), sha256: fmt.Sprintf("%x", sha256.Sum256([]byte(text))), close: func() {}}
	}
	if cut := returned.Cut(r, stream); cut > 0 && !full {
		header.Set("X-Tdf-Cut", stream)
		header.Set("X-Tdf-Bytes", strconv.FormatInt(cut, 10))
	}
	return a.answer(c, header), nil
}

// whole is what is kept of a stream beside its record, nil if that is nothing, and whether it is all.
func (a *api) whole(ctx context.Context, id int64, r *task.Round, stream string) (c *content, full bool, err error) {
	if returned.Cut(r, stream) == 0 || len(r.Whole) == 0 {
		return nil, false, nil
	}
	from := returned.Source{Manager: a.m, Damaged: func(files task.Files, err error) {
		a.log.Warn("a stream cannot be unpacked", "task", id, "round", r.Number, "files", files.Text(), "error", err)
	}}
	found := false
	c, err = a.spool(func(w io.Writer) (err error) {
		found, full, err = from.Reader(ctx).Stream(r, stream, w)
		return err
	})
	if err == nil && !found {
		c.close()
		c = nil
	}
	return c, full, err
}

// files answers with what a round has returned, if Redis keeps it. The destinations of tasks are nothing that a server reads: anyone who
// opens a task can name one.
func (a *api) files(ctx context.Context, in *roundIn) (*huma.StreamResponse, error) {
	r, err := a.round(ctx, in.ID, in.Round)
	switch {
	case err != nil:
		return nil, err
	case r.Files.Count == 0:
		return nil, newProblem(http.StatusNotFound, fmt.Sprintf("round %d of task %d has returned no files", r.Number, in.ID))
	case r.Files.To != "":
		return nil, newProblem(http.StatusNotFound,
			fmt.Sprintf("the files of round %d of task %d were returned to %s", r.Number, in.ID, r.Files.To))
	}
	c, err := a.spool(func(w io.Writer) error { return a.m.Files(ctx, r.Files, w) })
	if errors.Is(err, task.ErrNoBlob) {
		err = fmt.Errorf("the files of round %d of task %d are kept no longer ([server] file_retention): %w", r.Number, in.ID, err)
	}
	if err != nil {
		return nil, err
	}
	return a.answer(c, header(packedFiles, fmt.Sprintf("task-%d.tar.zst", in.ID))), nil
}

// content is what an answer sends.
type content struct {
	io.ReadSeeker

	sha256 string
	close  func()
}

// spool takes what write writes into a scratch file.
func (a *api) spool(write func(io.Writer) error) (*content, error) {
	if err := a.streams.outputs.enter(sentOutputs); err != nil {
		return nil, err
	}
	file, err := disk.NewScratch("")
	if err != nil {
		a.streams.outputs.leave()
		return nil, err
	}
	c := &content{ReadSeeker: file, close: func() {
		_ = file.Close() // it is gone with that
		a.streams.outputs.leave()
	}}
	if err = write(file); err == nil {
		c.sha256 = file.SHA256()
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// answer sends the content once.
func (a *api) answer(c *content, header http.Header) *huma.StreamResponse {
	header.Set("ETag", `"`+c.sha256+`"`)
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer c.close()
		r, w := humago.Unwrap(ctx)
		maps.Copy(w.Header(), header)
		to := a.streams.pieces(w)
		http.ServeContent(to, r, "", time.Time{}, c)
		to.more() // for the end
	}}
}

// followOutput answers with what the program writes, while it writes it.
func (a *api) followOutput(ctx context.Context, in *streamIn, stream string) (*huma.StreamResponse, error) {
	t, err := a.m.Task(ctx, in.ID)
	switch {
	case err != nil:
		return nil, err
	case in.Round >= 0 && in.Round != t.Round:
		return nil, newProblem(http.StatusNotFound,
			fmt.Sprintf("round %d: task %d is in round %d; only that can be followed", in.Round, in.ID, t.Round))
	}
	if err := a.streams.outputs.enter(sentOutputs); err != nil {
		return nil, err
	}
	opts := manager.FollowOptions{Stderr: stream == returned.Error, OneRound: in.Round >= 0, Round: in.Round}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer a.streams.outputs.leave()
		r, w := humago.Unwrap(c)
		maps.Copy(w.Header(), streamHeader(in.ID, stream))
		if r.Method == http.MethodHead {
			return
		}
		ctx, end := a.lasting(ctx)
		defer end()
		if err := a.send(ctx, a.streams.pieces(w), in.ID, opts); err != nil {
			if ctx.Err() == nil {
				a.log.Warn("what is followed ends too early", "request", requestOf(ctx), "task", in.ID, "error", err)
			}
			panic(http.ErrAbortHandler) // so that nobody takes it for the end
		}
	}}, nil
}

// send sends what is followed, piece by piece.
func (a *api) send(ctx context.Context, w *pieces, id int64, opts manager.FollowOptions) error {
	defer w.more() // for the end
	var parts returned.Pieces
	if err := w.send(nil); err != nil {
		return err
	}
	for part, err := range a.m.Follow(ctx, id, opts) {
		if err != nil {
			return err
		}
		if text := parts.Text(&part); text != "" {
			if err := w.send([]byte(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

func streamHeader(id int64, stream string) http.Header {
	return header(plainText+"; charset=utf-8", fmt.Sprintf("task-%d.%s", id, stream))
}

// header is that of bytes which anyone may have written: no browser shows them as a page of this site.
func header(kind, file string) http.Header {
	return http.Header{
		"Content-Type": {kind}, "Content-Disposition": {`attachment; filename="` + file + `"`},
		"Content-Security-Policy": {"default-src 'none'; sandbox"},
	}
}
