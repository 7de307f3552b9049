package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

const oneSum = `{"program":"sum","source":"http://h/sum.zip","input":"3"}`

// A wait ends when the tasks have, and says what came of them; or when its time is over.
func TestWait(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenSubmit)
	if got := want[answer.Waited](t, c.do(t, http.MethodGet, "/wait", ""), http.StatusOK); got.Total != 0 || got.TimedOut {
		t.Errorf("for nothing: %+v", got)
	}
	want[opened](t, c.do(t, http.MethodPost, "/tasks", oneSum+"\n"+oneSum, "Content-Type", manyTasks), http.StatusCreated)
	for _, path := range []string{"/wait?tasks=j1&timeout=1", "/wait?tasks=1-2&timeout=1", "/wait?timeout=1", "/wait?queue=default&timeout=1"} {
		if got := want[answer.Waited](t, c.do(t, http.MethodGet, path, ""), http.StatusOK); got.Total != 2 || got.Done != 0 || !got.TimedOut {
			t.Errorf("%s: %+v", path, got)
		}
	}
	paths := []string{"/wait?tasks=j1", "/wait?tasks=1,2", "/wait", "/wait?program=sum"}
	answers := make(chan *httptest.ResponseRecorder, len(paths))
	for _, path := range paths {
		go func() { answers <- c.do(t, http.MethodGet, path, "") }()
	}
	wait.Never(t, 100*time.Millisecond, func() bool { return len(answers) > 0 }, "a wait ends early")
	worktest.Drain(t, c.sp.Store, worktest.Fail)
	for range paths {
		got := want[answer.Waited](t, wait.Receive(t, time.Minute, answers, "a wait does not end"), http.StatusOK)
		if got.Done != 2 || got.TimedOut || got.States[statemachine.Failed] != 2 || got.Unsuccessful != 2 || len(got.First) != 2 || got.First[0].Error != "it broke" {
			t.Errorf("%+v", got)
		}
	}
	for path, detail := range map[string]string{"/wait?tasks=7": "7", "/wait?tasks=j7": "no such plan", "/wait?timeout=61": "timeout", "/wait?state=odd": "state"} {
		if w := c.do(t, http.MethodGet, path, ""); w.Code == http.StatusOK {
			t.Errorf("%s: %s, want %q", path, w.Body, detail)
		} else {
			wantProblem(t, w, w.Code, detail)
		}
	}
}

// A round is repeated by a task of its own, and compared with it.
func TestReplay(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenOperate)
	want[opened](t, c.do(t, http.MethodPost, "/tasks", oneSum), http.StatusCreated)
	wantProblem(t, c.do(t, http.MethodPost, "/tasks/1/replay", ""), http.StatusConflict, "has not ended")
	worktest.Drain(t, c.sp.Store, worktest.Echo)
	if got := want[answer.Replayed](t, c.do(t, http.MethodPost, "/tasks/1/replay?dry_run=true", ""), http.StatusCreated); got != (answer.Replayed{ID: 1, DryRun: true}) {
		t.Errorf("dry run: %+v", got)
	}
	w := c.do(t, http.MethodPost, "/tasks/1/replay?round=0", "")
	if got := want[answer.Replayed](t, w, http.StatusCreated); got != (answer.Replayed{ID: 1, Replay: 2}) || w.Header().Get("Location") != root+"/tasks/2" {
		t.Errorf("%+v, %v", got, w.Header())
	}
	for _, output := range []manager.Verdict{manager.Unknown, manager.Same} {
		got := want[answer.Compared](t, c.do(t, http.MethodGet, "/tasks/2/replay", ""), http.StatusOK)
		if got.Output != output || got.Ended != (output == manager.Same) || got.ID != 1 || got.Replay != 2 {
			t.Errorf("%+v", got)
		}
		worktest.Drain(t, c.sp.Store, worktest.Echo)
	}
	for path, detail := range map[string]string{"1/replay?round=3": "the last one is 0", "7/replay": "no such task"} {
		wantProblem(t, c.do(t, http.MethodPost, "/tasks/"+path, ""), http.StatusNotFound, detail)
	}
	wantProblem(t, c.do(t, http.MethodGet, "/tasks/1/replay", ""), http.StatusNotFound, "task 1: the task is not a replay")
}

// A wait may take longer than other answers. A server that stops ends it as if its time were over; there are so many and no more.
func TestLongestWait(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Open(t, storetest.Spec())
	a := apiOf(t, sp)
	if status, _, detail := glance(t, http.MethodGet, listen(t, a, 200*time.Millisecond), "/wait?timeout=1"); status != http.StatusOK {
		t.Errorf("%d %s", status, detail)
	}
	secure := httptest.NewUnstartedServer(a)
	secure.EnableHTTP2, secure.Config.WriteTimeout = true, 200*time.Millisecond
	secure.StartTLS()
	t.Cleanup(secure.Close)
	reply, err := secure.Client().Do(request(t.Context(), t, http.MethodGet, secure.URL, "/wait?timeout=1"))
	if err != nil || reply.StatusCode != http.StatusOK || reply.ProtoMajor != 2 || reply.Body.Close() != nil {
		t.Errorf("over HTTP/2: %+v, %v", reply, err)
	}
	url, stop := stopping(t, a)
	a.streams.waits = make(room, 1)
	looks := make(chan struct{}, 1<<16)
	sp.Server.Monitor(t, func(words []string) {
		if slices.Contains(words, sp.Key("task:1")) {
			looks <- struct{}{}
		}
	})
	ended := make(chan bool, 1)
	go func() {
		reply, err := http.DefaultClient.Do(request(t.Context(), t, http.MethodGet, url, "/wait?timeout=60"))
		var got answer.Waited
		if err == nil {
			err = errors.Join(json.NewDecoder(reply.Body).Decode(&got), reply.Body.Close())
		}
		ended <- err == nil && got.TimedOut && got.Total == 1
	}()
	for range 2 { // the second one knows what the first has found
		wait.Receive(t, time.Minute, looks, "nobody waits")
	}
	status, header, detail := glance(t, http.MethodGet, url, "/wait")
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(detail, "1 waits are open") {
		t.Errorf("%d %v %s", status, header, detail)
	}
	stop()
	if !wait.Receive(t, time.Minute, ended, "the wait goes on") {
		t.Error("no answer")
	}
}

// What a server that stops has cut short is no fault of its own: it can be asked for again.
func TestStopIsNoFault(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	err := failure(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), fmt.Errorf("select tasks: %w", context.Canceled))
	var header huma.HeadersError
	p, is := errors.AsType[*huma.ErrorModel](err)
	if !is || p.Status != http.StatusServiceUnavailable || !errors.As(err, &header) || header.GetHeaders().Get("Retry-After") == "" || log.Len() > 0 {
		t.Errorf("%v, logged %q", err, &log)
	}
}
