package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/task"
)

const (
	anyBytes = "application/octet-stream"
	// mostUploads is how many blobs are put at a time: each has a scratch file.
	mostUploads = 8
)

// blobs serves what tasks take along.
func (a *api) blobs() {
	const tag = "blobs"
	add(a, operation{
		method: http.MethodPut, path: "/blobs/{sha256}", id: "put-blob", tag: tag, role: task.TokenSubmit, status: http.StatusCreated,
		does: "Put bytes that tasks read from stdin, or a packed program that they run",
		detail: "The body, up to [server] blob_limit, must have that hash. A task names it as stdin, or as source if it is a tar archive " +
			"compressed with zstd. It stays for a day, and for as long as a task that names it is in Redis.",
	}, a.putBlob)
	put := a.huma.OpenAPI().Paths[root+"/blobs/{sha256}"].Put
	put.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		anyBytes: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
	}}
	put.Responses[strconv.Itoa(http.StatusOK)] = put.Responses[strconv.Itoa(http.StatusCreated)] // it was there
	add(a, operation{
		method: http.MethodGet, path: "/blobs/{sha256}", id: "get-blob", tag: tag, role: task.TokenRead,
		does: "Get bytes that were put", detail: "HEAD says whether they are there. " + rangesHelp, change: a.streaming(anyBytes),
	}, a.getBlob)
}

// blobIn is a blob that is sent.
type blobIn struct {
	SHA256 string `path:"sha256" pattern:"^[0-9a-f]{64}$" doc:"The SHA-256 of the bytes, in hex."`
}

type blobPut struct {
	Status   int
	Location string `header:"Location" doc:"The blob."`
	Body     struct {
		Blob  string `json:"blob" doc:"What a task names it." example:"blob:sha256=..."`
		Bytes int64  `json:"bytes"`
	}
}

func (a *api) putBlob(ctx context.Context, in *blobIn) (_ *blobPut, err error) {
	if err := a.uploads.enter("uploads"); err != nil {
		return nil, err
	}
	defer a.uploads.leave()
	file, err := a.received(ctx, in.SHA256)
	if err != nil {
		return nil, err
	}
	defer callerOf(ctx).sent.done()
	defer func() { err = errors.Join(err, file.Close()) }()
	out := &blobPut{Status: http.StatusOK, Location: root + "/blobs/" + in.SHA256}
	if _, err := a.m.BlobSize(ctx, in.SHA256); err != nil {
		out.Status = http.StatusCreated // or Redis does not answer, which PutBlob says
	}
	out.Body.Bytes = file.Size()
	out.Body.Blob, err = a.m.PutBlob(ctx, in.SHA256, file.Size(), file)
	return out, err
}

// received is the body of a request, which must have that hash. The caller closes it.
func (a *api) received(ctx context.Context, sha256 string) (*disk.Scratch, error) {
	limit, err := a.m.BlobLimit(ctx)
	if err != nil {
		return nil, err
	}
	file, err := disk.NewScratch("")
	if err != nil {
		return nil, err
	}
	s := callerOf(ctx).sent
	if err := s.to(file, limit); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if is := file.SHA256(); is != sha256 {
		s.done()
		return nil, errors.Join(newProblem(http.StatusUnprocessableEntity,
			fmt.Sprintf("the body of %d bytes has the SHA-256 %s; nothing was done", file.Size(), is),
			&huma.ErrorDetail{Location: "path.sha256", Value: sha256, Message: "want " + is}), file.Close())
	}
	return file, nil
}

// blobOut is a blob that is asked for.
type blobOut struct {
	SHA256 string `path:"sha256" pattern:"^[0-9a-f]{64}$" doc:"The SHA-256 of the bytes, in hex."`

	head bool
}

// Resolve implements [huma.Resolver].
func (in *blobOut) Resolve(ctx huma.Context) []error {
	in.head = ctx.Method() == http.MethodHead
	return nil
}

func (a *api) getBlob(ctx context.Context, in *blobOut) (*huma.StreamResponse, error) {
	header := header(anyBytes, in.SHA256)
	if in.head {
		size, err := a.m.BlobSize(ctx, in.SHA256)
		if err != nil {
			return nil, err
		}
		header.Set("ETag", `"`+in.SHA256+`"`)
		header.Set("Content-Length", strconv.FormatInt(size, 10))
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			_, w := humago.Unwrap(ctx)
			maps.Copy(w.Header(), header)
			w.WriteHeader(http.StatusOK)
		}}, nil
	}
	c, err := a.spool(func(w io.Writer) error { return a.m.Blob(ctx, in.SHA256, w) })
	if err != nil {
		return nil, err
	}
	return a.answer(c, header), nil
}
