package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/task"
)

// hashOf is the SHA-256 of a text, in hex.
func hashOf(text string) string { return strings.Trim(tag(text), `"`) }

// A blob is put under its hash, named by a task, and read back, in ranges too.
func TestBlobs(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenSubmit)
	const text = "1\n2\n3\n"
	path := "/blobs/" + hashOf(text)
	wantProblem(t, c.do(t, http.MethodGet, path, ""), http.StatusNotFound, "no such blob")
	if w := c.do(t, http.MethodHead, path, ""); w.Code != http.StatusNotFound {
		t.Errorf("HEAD: %d", w.Code)
	}
	type put struct {
		Blob  string
		Bytes int64
	}
	for _, status := range []int{http.StatusCreated, http.StatusOK} {
		w := c.do(t, http.MethodPut, path, text)
		if got := want[put](t, w, status); got.Blob != "blob:sha256="+hashOf(text) || got.Bytes != 6 || w.Header().Get("Location") != root+path {
			t.Errorf("%+v at %s", got, w.Header())
		}
	}
	wantBody(t, c.do(t, http.MethodGet, path, ""), http.StatusOK, text, "ETag", tag(text), "Content-Type", anyBytes)
	wantBody(t, c.do(t, http.MethodGet, path, "", "Range", "bytes=2-3"), http.StatusPartialContent, "2\n", "Content-Range", "bytes 2-3/6")
	wantBody(t, c.do(t, http.MethodGet, path, "", "If-None-Match", tag(text)), http.StatusNotModified, "")
	wantBody(t, c.do(t, http.MethodHead, path, ""), http.StatusOK, "", "ETag", tag(text), "Content-Length", "6")
	stdin := fmt.Sprintf(`{"source":"command:cat","stdin":"blob:sha256=%s"}`, hashOf(text))
	want[opened](t, c.do(t, http.MethodPost, "/tasks", stdin), http.StatusCreated)
	c.submitPlan(t, "", "steps:\n  one: "+stdin+"\n")
}

// What is not what it is called is not kept, nor what there is no room for.
func TestBlobsRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenSubmit)
	if err := c.sp.Store.PublishBlobs(t.Context(), 10, 15, time.Hour); err != nil {
		t.Fatal(err)
	}
	const first, second = "0123456789", "9876543210"
	want[struct{}](t, c.do(t, http.MethodPut, "/blobs/"+hashOf(first), first), http.StatusCreated)
	for _, tt := range []struct {
		path, text string
		status     int
		detail     string
	}{
		{hashOf(second), first + "x", 413, "at most 10 bytes"},
		{hashOf(second), "short", 422, "the body of 5 bytes has the SHA-256 " + hashOf("short")},
		{hashOf(second), second, 507, "blob_quota"},
		{strings.ToUpper(hashOf(first)), first, 422, "path.sha256"},
		{"x", first, 422, "path.sha256"},
	} {
		wantProblem(t, c.do(t, http.MethodPut, "/blobs/"+tt.path, tt.text), tt.status, tt.detail)
	}
	wantProblem(t, c.do(t, http.MethodGet, "/blobs/"+hashOf(second), ""), http.StatusNotFound, "no such blob")
	c.sp.Raw.Set(t.Context(), c.sp.Key("blob:"+hashOf(first)+":0"), second, 0)
	wantProblem(t, c.do(t, http.MethodGet, "/blobs/"+hashOf(first), ""), http.StatusNotFound, "has another one")
}
