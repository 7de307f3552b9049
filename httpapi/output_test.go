package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/disk"
	stored "github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// read asks as a reader, with headers: names and values in turn.
func read(t *testing.T, h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(t.Context(), t, method, "", path, headers...))
	return w
}

// wantBody checks an answer, and headers: names and values in turn.
func wantBody(t *testing.T, w *httptest.ResponseRecorder, status int, body string, headers ...string) {
	t.Helper()
	if w.Code != status || w.Body.String() != body {
		t.Errorf("%d %.300q, want %d %.300q", w.Code, w.Body, status, body)
	}
	for i := 0; i < len(headers); i += 2 {
		if got := w.Header().Get(headers[i]); got != headers[i+1] {
			t.Errorf("%s: %q, want %q", headers[i], got, headers[i+1])
		}
	}
}

// record changes the record of a task: names and texts in turn.
func record(t *testing.T, sp *storetest.Space, id int64, fields ...any) {
	t.Helper()
	if err := sp.Raw.HSet(t.Context(), fmt.Sprintf("%s:%d", sp.Key("task"), id), fields...).Err(); err != nil {
		t.Fatal(err)
	}
}

// ran is a task that has written that in its first round.
func ran(t *testing.T, sp *storetest.Space, output, errText string) int64 {
	t.Helper()
	ids := sp.Open(t, storetest.Spec(func(d *task.Definition) { storetest.Set(d, "max_fails", "1") }))
	sp.Report(t, &sp.Claim(t, "w", 1)[0], output, errText)
	return ids[0]
}

// kept puts files where a worker puts what it returns.
func kept(t *testing.T, sp *storetest.Space, files map[string]string) task.Files {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := disk.NewScratch("")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packed.Close() }()
	count, _, err := fetch.PackFiles(t.Context(), packed, dir, "", []string{"."})
	f := task.Files{SHA256: packed.SHA256(), Bytes: packed.Size(), Count: count}
	if err == nil {
		err = sp.Store.PutFiles(t.Context(), f.SHA256, f.Bytes, packed, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sweep lets the time of kept files be over.
func sweep(t *testing.T, sp *storetest.Space, f task.Files) {
	t.Helper()
	sp.Raw.ZAdd(t.Context(), sp.Key("files"), redis.Z{Member: f.SHA256, Score: 1})
	if _, n, err := sp.Store.Sweep(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

func tag(text string) string { return fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(text))) }

// The bytes of a program come as they are, in a form that no browser takes for a page, whole or in ranges.
func TestOutput(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	handler := apiOf(t, sp)
	const text = "<script>alert(1)</script>\x00\xff\xfe\r\n"
	id := ran(t, sp, text, "<b>bad\xff")
	safe := []string{
		"Content-Type", "text/plain; charset=utf-8", "X-Content-Type-Options", "nosniff",
		"Content-Security-Policy", "default-src 'none'; sandbox", "X-Tdf-Cut", "", "X-Tdf-Bytes", "",
	}
	path := fmt.Sprintf("/tasks/%d/", id)
	whole := append([]string{"Content-Disposition", fmt.Sprintf(`attachment; filename="task-%d.output"`, id), "Etag", tag(text)}, safe...)
	wantBody(t, read(t, handler, http.MethodGet, path+"output"), http.StatusOK, text, whole...)
	wantBody(t, read(t, handler, http.MethodHead, path+"output"), http.StatusOK, "", append(whole, "Content-Length", fmt.Sprint(len(text)))...)
	wantBody(t, read(t, handler, http.MethodGet, path+"output", "If-None-Match", tag(text)), http.StatusNotModified, "")
	wantBody(t, read(t, handler, http.MethodGet, path+"output", "Range", "bytes=1-6"), http.StatusPartialContent, "script",
		append(whole, "Content-Range", fmt.Sprintf("bytes 1-6/%d", len(text)))...)
	wantBody(t, read(t, handler, http.MethodGet, path+"output", "Range", "bytes=-4"), http.StatusPartialContent, "\xff\xfe\r\n")
	wantBody(t, read(t, handler, http.MethodGet, path+"output", "Range", "bytes=1-6", "If-Range", `"x"`), http.StatusOK, text)
	wantBody(t, read(t, handler, http.MethodGet, path+"error"), http.StatusOK, "<b>bad\xff", append([]string{
		"Content-Disposition", fmt.Sprintf(`attachment; filename="task-%d.error"`, id),
	}, safe...)...)
	w := read(t, handler, http.MethodGet, path+"output", "Range", "bytes=900-")
	wantProblem(t, w, http.StatusRequestedRangeNotSatisfiable, "bytes=0-99")
	if got := w.Header().Get("Content-Range"); got != fmt.Sprintf("bytes */%d", len(text)) {
		t.Errorf("Content-Range: %q", got)
	}
	record(t, sp, id, "0:error", "", "0:stderr", "chat")
	wantBody(t, read(t, handler, http.MethodGet, path+"error"), http.StatusOK, "chat")
	wantProblem(t, ask(t, handler, http.MethodGet, root+path+"output"), http.StatusUnauthorized, "token")
	wantProblem(t, read(t, handler, http.MethodPost, path+"output"), http.StatusMethodNotAllowed, "GET, HEAD")
}

// Each round has what it wrote; the last one that was begun is meant if none is named.
func TestOutputOfRounds(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	handler := apiOf(t, sp)
	id := ran(t, sp, "first", "bad")
	settle(t, sp)
	path := fmt.Sprintf("/tasks/%d/output", id)
	wantBody(t, read(t, handler, http.MethodGet, path), http.StatusOK, "first") // the second is open
	sp.Report(t, &sp.Claim(t, "w", 1)[0], "second", "")
	for query, want := range map[string]string{"": "second", "?round=-1": "second", "?round=0": "first", "?round=1&follow=false": "second"} {
		wantBody(t, read(t, handler, http.MethodGet, path+query), http.StatusOK, want)
	}
	waiting := sp.Open(t, storetest.Spec())[0]
	for path, want := range map[string]string{
		path + "?round=2":                                       fmt.Sprintf("task %d has no round 2; it has 2, counted from 0", id),
		fmt.Sprintf("/tasks/%d/error", waiting):                 "has not been run yet (it is open)",
		fmt.Sprintf("/tasks/%d/files", waiting):                 "has not been run yet (it is open)",
		fmt.Sprintf("/tasks/%d/files", id):                      fmt.Sprintf("round 1 of task %d has returned no files", id),
		"/tasks/999/output":                                     "no such task",
		"/tasks/999/output?follow=true":                         "no such task",
		"/tasks/999/files":                                      "no such task",
		fmt.Sprintf("/tasks/%d/output?follow=true&round=0", id): fmt.Sprintf("round 0: task %d is in round 1; only that can be followed", id),
	} {
		wantProblem(t, read(t, handler, http.MethodGet, path), http.StatusNotFound, want)
	}
	for _, query := range []string{"?round=x", "?round=-2", "?follow=x", "?of=1"} {
		wantProblem(t, read(t, handler, http.MethodGet, path+query), http.StatusUnprocessableEntity, "")
	}
	record(t, sp, id, "1:output", "", "1:dropped", "1")
	wantProblem(t, read(t, handler, http.MethodGet, path), http.StatusNotFound, "is kept no longer (keep_rounds)")
}

// Of a stream that is longer than its record comes what is kept beside that, in ranges too, and else the excerpt. What is missing is said.
func TestOutputBeyondTheRecord(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	handler := apiOf(t, sp)
	id := ran(t, sp, "", "")
	text, path := strings.Repeat("all of it\x00\n", 20_000), fmt.Sprintf("/tasks/%d/output", id)
	whole, most := kept(t, sp, map[string]string{"output": text}), kept(t, sp, map[string]string{"output.cut": "most of it", "error": "all\n"})
	record(t, sp, id, "0:output", "all...it", "0:output_bytes", len(text), "0:output_sha256", strings.Trim(tag(text), `"`), "0:whole", whole.Text())
	wantBody(t, read(t, handler, http.MethodGet, path), http.StatusOK, text, "Etag", tag(text), "X-Tdf-Cut", "", "X-Tdf-Bytes", "",
		"Content-Security-Policy", "default-src 'none'; sandbox")
	wantBody(t, read(t, handler, http.MethodGet, path, "Range", "bytes=11-13"), http.StatusPartialContent, "all")
	wantBody(t, read(t, handler, http.MethodGet, path, "If-None-Match", tag(text)), http.StatusNotModified, "")
	sweep(t, sp, whole)
	cut := []string{"X-Tdf-Cut", "output", "X-Tdf-Bytes", fmt.Sprint(len(text))}
	wantBody(t, read(t, handler, http.MethodGet, path), http.StatusOK, "all...it", append(cut, "Etag", tag("all...it"))...)
	record(t, sp, id, "0:whole", most.Text(), "0:error", "a", "0:error_bytes", 4, "0:error_sha256", "b")
	wantBody(t, read(t, handler, http.MethodGet, path), http.StatusOK, "most of it", append(cut, "Etag", tag("most of it"))...)
	wantBody(t, read(t, handler, http.MethodHead, path), http.StatusOK, "", cut...)
	wantBody(t, read(t, handler, http.MethodGet, fmt.Sprintf("/tasks/%d/error", id)), http.StatusOK, "all\n", "X-Tdf-Cut", "")
	for _, c := range [][2]string{{most.Text(), "most of it"}, {whole.Text(), "all...it"}, {"", "all...it"}} {
		record(t, sp, id, "0:whole", c[0])
		for range cap(handler.streams.outputs) + 1 { // none takes the place of another
			wantBody(t, read(t, handler, http.MethodGet, path), http.StatusOK, c[1], cut...)
		}
	}
}

// returnedTo is a task whose files are in a directory of this host.
func returnedTo(t *testing.T, sp *storetest.Space) (id int64, dir string) {
	t.Helper()
	dir = t.TempDir()
	ids := sp.Open(t, storetest.Spec(func(d *task.Definition) { storetest.Set(d, "return", `["*"]`, "return_to", "file:"+dir) }))
	sp.Report(t, &sp.Claim(t, "w", 1)[0], "part", "")
	at := filepath.Join(dir, fmt.Sprint(ids[0]))
	err := errors.Join(os.MkdirAll(at, 0o700), os.MkdirAll(at+".0.logs", 0o700))
	for _, file := range []string{filepath.Join(at, "secret"), filepath.Join(at+".0.logs", "output")} {
		err = errors.Join(err, os.WriteFile(file, []byte("secret"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	record(t, sp, ids[0], "0:files", "- 6 1", "0:whole", "- 6 1", "0:output_bytes", 6, "0:output_sha256", "a")
	return ids[0], dir
}

// What a round has returned comes as it is kept, and what a task names on the server's own host is not read.
func TestFiles(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	handler := apiOf(t, sp)
	id := ran(t, sp, "", "")
	path := fmt.Sprintf("/tasks/%d/files", id)
	f := kept(t, sp, map[string]string{"a.txt": "one", "b": "<html>"})
	record(t, sp, id, "0:files", f.Text())
	w := read(t, handler, http.MethodGet, path)
	wantBody(t, w, http.StatusOK, w.Body.String(), "Content-Type", "application/zstd", "Etag", `"`+f.SHA256+`"`,
		"Content-Disposition", fmt.Sprintf(`attachment; filename="task-%d.tar.zst"`, id), "X-Content-Type-Options", "nosniff",
		"Content-Security-Policy", "default-src 'none'; sandbox", "Content-Length", fmt.Sprint(f.Bytes))
	got := map[string]string{}
	err := fetch.UnpackFiles(t.Context(), bytes.NewReader(w.Body.Bytes()), func(name string, _ fs.FileMode, _ int64, r io.Reader) error {
		text, err := io.ReadAll(r)
		got[name] = string(text)
		return err
	})
	if err != nil || len(got) != 2 || got["a.txt"] != "one" || got["b"] != "<html>" {
		t.Errorf("%v, %q", err, got)
	}
	wantBody(t, read(t, handler, http.MethodGet, path+"?round=0", "If-None-Match", `"`+f.SHA256+`"`), http.StatusNotModified, "")
	wantBody(t, read(t, handler, http.MethodGet, path, "Range", "bytes=0-3"), http.StatusPartialContent, w.Body.String()[:4])
	sweep(t, sp, f)
	wantProblem(t, read(t, handler, http.MethodGet, path), http.StatusNotFound, "are kept no longer ([server] file_retention)")
	away, dir := returnedTo(t, sp)
	wantProblem(t, read(t, handler, http.MethodGet, fmt.Sprintf("/tasks/%d/files", away)), http.StatusNotFound,
		fmt.Sprintf("were returned to file:%s/%d", dir, away))
	wantBody(t, read(t, handler, http.MethodGet, fmt.Sprintf("/tasks/%d/output", away)), http.StatusOK, "part", "X-Tdf-Cut", "output", "X-Tdf-Bytes", "6")
}

// live is an answer that comes while a program runs.
type live struct {
	mu    sync.Mutex
	text  strings.Builder
	ended chan error
}

func (l *live) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *live) says(t *testing.T, want string) {
	t.Helper()
	wait.Eventually(t, time.Minute, func() bool { return l.String() == want }, "it says %q, want %q", l, want)
}

// begin asks for a stream.
func begin(ctx context.Context, t *testing.T, url, path string) (*live, http.Header) {
	t.Helper()
	answer, err := http.DefaultClient.Do(request(ctx, t, http.MethodGet, url, path)) //nolint:bodyclose // the reader does that
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", path, answer.Status)
	}
	l := &live{ended: make(chan error, 1)}
	go func() {
		_, err := io.Copy(l, answer.Body)
		l.ended <- errors.Join(err, answer.Body.Close())
	}()
	return l, answer.Header
}

// glance asks for a stream, and closes it at once. If the request is refused, detail says why.
func glance(t *testing.T, method, url, path string) (status int, header http.Header, detail string) {
	t.Helper()
	answer, err := http.DefaultClient.Do(request(t.Context(), t, method, url, path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var p struct{ Detail string }
	if answer.StatusCode != http.StatusOK {
		err = json.NewDecoder(answer.Body).Decode(&p)
	}
	if err != nil {
		t.Error(err)
	}
	return answer.StatusCode, answer.Header, p.Detail
}

// listen serves a site, with a limit to the time of an answer as servers have.
func listen(t *testing.T, a *api, limit time.Duration) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(a)
	srv.Config.WriteTimeout = limit
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

func send(t *testing.T, sp *storetest.Space, c *stored.Claimed, stream string, offset int64, text string) {
	t.Helper()
	chunk := stored.Chunk{Stream: stream, Offset: offset, Data: []byte(text)}
	if err := sp.Store.Tell(t.Context(), "w", &c.Task, stored.News{Chunks: []stored.Chunk{chunk}}); err != nil {
		t.Fatal(err)
	}
}

// What a program writes comes while it runs, also after a silence longer than other answers may take, and the answer ends with the task.
func TestFollow(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	const limit = 2 * time.Second
	url := listen(t, apiOf(t, sp), limit)
	ids := sp.Open(t, storetest.Spec(func(d *task.Definition) { storetest.Set(d, "max_fails", "1") }), storetest.Spec())
	id := ids[0]
	if status, _, detail := glance(t, http.MethodHead, url, fmt.Sprintf("/tasks/%d/output?follow=true", id)); status != http.StatusOK {
		t.Error(status, detail)
	}
	all, got := begin(t.Context(), t, url, fmt.Sprintf("/tasks/%d/output?follow=true", id)) // it waits for the first round
	if got.Get("Content-Type") != "text/plain; charset=utf-8" ||
		got.Get("Content-Security-Policy") != "default-src 'none'; sandbox" || got.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", got)
	}
	claimed := sp.Claim(t, "w", 2)
	c := claimed[0]
	one, _ := begin(t.Context(), t, url, fmt.Sprintf("/tasks/%d/error?follow=true&round=0", id))
	none, _ := begin(t.Context(), t, url, fmt.Sprintf("/tasks/%d/output?follow=true", ids[1]))
	send(t, sp, &c, "output", 0, "<one>\x00\xff")
	all.says(t, "<one>\x00\xff")
	wait.Never(t, limit+limit/2, func() bool { return len(all.ended) > 0 }, "it does not wait")
	send(t, sp, &c, "output", 11, "later")
	const first = "<one>\x00\xff\n[tdf: 4 bytes left out]\nlater"
	all.says(t, first)
	send(t, sp, &c, "error", 0, "bad")
	one.says(t, "bad")
	sp.Report(t, &c, "<one>\x00\xffetc.later", "bad luck")
	if err := wait.Receive(t, time.Minute, one.ended, "it does not end with the round"); err != nil || one.String() != "bad luck" {
		t.Errorf("%v, %q", err, one)
	}
	sp.Report(t, &claimed[1], "", "")
	settle(t, sp)
	if err := wait.Receive(t, time.Minute, none.ended, "one without output does not end"); err != nil || none.String() != "" {
		t.Errorf("%v, %q", err, none)
	}
	sp.Report(t, &sp.Claim(t, "w", 1)[0], "second", "")
	settle(t, sp)
	if err := wait.Receive(t, time.Minute, all.ended, "it does not end with the task"); err != nil || all.String() != first+"second" {
		t.Errorf("%v, %q", err, all)
	}
}

// So many streams are sent and no more, and one ends when its client has gone.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	a := apiOf(t, sp)
	url, path := listen(t, a, 0), fmt.Sprintf("/tasks/%d/output?follow=true", sp.Open(t, storetest.Spec())[0])
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	begin(ctx, t, url, path)
	for range cap(a.streams.outputs) - 1 {
		begin(t.Context(), t, url, path)
	}
	if status, header, detail := glance(t, http.MethodGet, url, path); status != http.StatusServiceUnavailable ||
		header.Get("Retry-After") != "1" || !strings.Contains(detail, "8 streams of what tasks write and return are open") {
		t.Errorf("%d, %v, %s", status, header, detail)
	}
	leave()
	wait.Eventually(t, time.Minute, func() bool {
		status, _, _ := glance(t, http.MethodGet, url, path)
		return status == http.StatusOK
	}, "nothing ends")
}

// A task that goes away ends what is followed in a way that is not taken for its end.
func TestFollowBreaksOff(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	url := listen(t, apiOf(t, sp), 0)
	id := sp.Open(t, storetest.Spec())[0]
	c := sp.Claim(t, "w", 1)[0]
	l, _ := begin(t.Context(), t, url, fmt.Sprintf("/tasks/%d/output?follow=true", id))
	send(t, sp, &c, "output", 0, "one")
	l.says(t, "one")
	record(t, sp, id, "round", "x")
	if err := wait.Receive(t, time.Minute, l.ended, "it goes on"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("ended with %v", err)
	}
}

// What is followed ends once the server stops or the token is not valid any more, in a way that is not taken for its end.
func TestFollowStops(t *testing.T) {
	t.Parallel()
	for name, revoke := range map[string]bool{"stop": false, "revoked": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			a := apiOf(t, sp)
			if revoke {
				a.streams.recheck = 20 * time.Millisecond
			}
			url, stop := stopping(t, a)
			l, _ := begin(t.Context(), t, url, fmt.Sprintf("/tasks/%d/output?follow=true", sp.Open(t, storetest.Spec())[0]))
			if !revoke {
				stop()
			} else if err := a.m.RevokeToken(t.Context(), "reader", manager.ChangeOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := wait.Receive(t, time.Minute, l.ended, "it goes on"); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// deadlines notes until when a write may take.
type deadlines struct {
	*httptest.ResponseRecorder

	until []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.until = append(d.until, t)
	return nil
}

// Each piece has its own time, however long the answer is, and so has its end.
func TestPieces(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	a := apiOf(t, sp)
	id := ran(t, sp, strings.Repeat("x", 200_000), "")
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	begun := time.Now()
	a.ServeHTTP(d, request(t.Context(), t, http.MethodGet, "", fmt.Sprintf("/tasks/%d/output", id)))
	if len(d.until) < 4 || d.Body.Len() != 200_000 {
		t.Errorf("%d pieces of %d bytes", len(d.until), d.Body.Len())
	}
	for _, until := range d.until {
		if until.Before(begun.Add(sendTimeout)) || until.After(time.Now().Add(sendTimeout)) {
			t.Errorf("a piece may take until %v", until.Sub(begun))
		}
	}
}

// A request may take its time, but the answer has an end to its own, also where nothing came of it.
func TestAnswersEnd(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenOperate)
	for path, body := range map[string]string{
		"/tasks": "{", "/tasks/cancel": `{"tasks": ["j7"]}`, "/plans/7/cancel": "", "/plans/7/retry": "", "/wait?tasks=7": "",
	} {
		method := http.MethodPost
		if body == "" && strings.HasPrefix(path, "/wait") {
			method = http.MethodGet
		}
		r := httptest.NewRequestWithContext(t.Context(), method, root+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+c.token)
		d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		c.handler.ServeHTTP(d, r)
		if n := len(d.until); d.Code < 400 || n > 0 && d.until[n-1].IsZero() {
			t.Errorf("%s: %d, until %v", path, d.Code, d.until)
		}
	}
}

// The description says which bytes come.
func TestStreamsAreDescribed(t *testing.T) {
	t.Parallel()
	w := ask(t, apiOf(t, storetest.New(t)), http.MethodGet, root+"/openapi.json")
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Content map[string]any }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{"output": "text/plain", "error": "text/plain", "files": "application/zstd"} {
		all := doc.Paths[root+"/tasks/{id}/"+name]["get"].Responses
		for _, status := range []string{"200", "206"} {
			if all[status].Content[kind] == nil {
				t.Errorf("%s %s: %+v", name, status, all)
			}
		}
		if all["default"].Content["application/problem+json"] == nil {
			t.Errorf("%s without problems: %+v", name, all)
		}
	}
}
