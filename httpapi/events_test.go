package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// apiOf makes the interface of a site in the space, whose streams may be changed before it serves.
func apiOf(t *testing.T, sp *storetest.Space) *api {
	t.Helper()
	m := manager.New(storetest.At(t, sp.Where, sp.Namespace, nil), "test", manager.Options{Logger: slog.New(slog.DiscardHandler)})
	secret, _, err := m.NewToken(t.Context(), task.TokenSpec{Name: "reader", Role: task.TokenRead}, manager.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secrets.Store(t.Name(), secret)
	return newAPI(&Options{Manager: m, Logger: slog.New(slog.DiscardHandler)})
}

// secrets are the tokens for what apiOf has made, by the names of the tests.
var secrets sync.Map

func secretOf(t *testing.T) string {
	t.Helper()
	secret, _ := secrets.Load(t.Name())
	text, _ := secret.(string)
	return text
}

// served serves the interface until the test ends.
func served(t *testing.T, a *api) (url string) {
	t.Helper()
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	return srv.URL
}

// stopping serves the interface until it is stopped, which waits until each answer has come to its end.
func stopping(t *testing.T, a *api) (url string, stop func()) {
	t.Helper()
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	return srv.URL, func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := srv.Config.Shutdown(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
}

// message is a part of a stream between two empty lines.
type message struct{ id, event, data, comment string }

// reader reads a stream as a client does.
type reader struct {
	reply    *http.Response
	messages chan message
	err      error // why it ended, once messages is closed
	close    func()
}

// request asks for a path of the interface; headers are names and values in turn.
func request(ctx context.Context, t *testing.T, method, url, path string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url+root+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secretOf(t))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// follow opens a stream.
func follow(t *testing.T, url, query string, headers ...string) *reader {
	t.Helper()
	return followBy(t, http.DefaultClient, url, query, headers...)
}

func followBy(t *testing.T, client *http.Client, url, query string, headers ...string) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reply, err := client.Do(request(ctx, t, http.MethodGet, url, "/events"+query, headers...)) //nolint:bodyclose // close does
	if err != nil {
		t.Fatal(err)
	}
	if reply.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(reply.Body)
		t.Fatalf("%d: %s", reply.StatusCode, text)
	}
	s := &reader{reply: reply, messages: make(chan message)}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(s.messages)
		s.err = s.read(ctx)
	})
	s.close = func() {
		cancel()
		reading.Wait()
		_ = reply.Body.Close()
	}
	t.Cleanup(s.close)
	return s
}

func (s *reader) read(ctx context.Context) error {
	var m message
	lines := bufio.NewReader(s.reply.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		name, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			m.id = text
		case "event":
			m.event = text
		case "data":
			m.data += text
		case "":
			if text != "" {
				m.comment = text
				break
			}
			select {
			case s.messages <- m:
				m = message{}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// next is the next message that is no mere comment.
func (s *reader) next(t *testing.T) message {
	t.Helper()
	for {
		if m := wait.Receive(t, time.Minute, s.messages, "no message"); m.id != "" {
			return m
		}
	}
}

// event reads the next message, which is an event of a task.
func (s *reader) event(t *testing.T) task.Event {
	t.Helper()
	m := s.next(t)
	var e struct {
		task.Event

		At string `json:"at"`
	}
	if err := json.Unmarshal([]byte(m.data), &e); err != nil || m.event != "task" || m.id != strconv.FormatInt(e.Seq, 10) {
		t.Fatalf("%+v, %v", m, err)
	}
	return e.Event
}

// begun reads the first message, which says after which event the stream begins.
func (s *reader) begun(t *testing.T, after int64) {
	t.Helper()
	if m := s.next(t); m != (message{id: strconv.FormatInt(after, 10)}) {
		t.Fatalf("begins with %+v, want after %d", m, after)
	}
}

// ended waits for the end of the stream.
func (s *reader) ended(t *testing.T) {
	t.Helper()
	wait.Closed(t, time.Minute, s.messages, "the stream does not end")
}

func newest(t *testing.T, sp *storetest.Space) int64 {
	t.Helper()
	_, n, err := sp.Store.EventSpan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A stream begins now, unless it is told where to, and gives each event as the verb history prints it.
func TestEvents(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	url := served(t, apiOf(t, sp))
	sp.Open(t, storetest.Spec())
	begin := newest(t, sp)
	s := follow(t, url, "")
	s.begun(t, begin)
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
		if got := s.reply.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	id := sp.Open(t, storetest.Spec())[0]
	m := s.next(t)
	events, err := sp.Store.Events(t.Context(), begin+1, 2)
	if err != nil || len(events) != 1 {
		t.Fatalf("%+v, %v", events, err)
	}
	e := &events[0]
	want := fmt.Sprintf(`{"seq":%d,"id":%d,"round":%d,"from":"","to":"open","event":"create","actor":"%s","by":"%s","at":"%s"}`,
		e.Seq, id, e.Round, e.Actor, e.By, task.Stamp(e.At).Text())
	if m != (message{id: strconv.FormatInt(e.Seq, 10), event: "task", data: want}) {
		t.Errorf("got  %+v\nwant %s", m, want)
	}
	all := follow(t, url, "?after=0")
	all.begun(t, 0)
	if e := all.event(t); e.ID != 1 || e.To != "open" {
		t.Errorf("%+v, want the first", e)
	}
	header := follow(t, url, "?after=0", "Last-Event-ID", strconv.FormatInt(begin, 10)) // of which a browser sends both
	header.begun(t, begin)
	if e := header.event(t); e.ID != id {
		t.Errorf("%+v, want one of task %d", e, id)
	}
}

// A client that is cut off again and again goes on where it was: while tasks move it gets each event once, in order.
func TestEventsResume(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	url := served(t, apiOf(t, sp))
	const rounds, each = 20, 10 // each task is opened, claimed and reported
	var moving sync.WaitGroup
	defer moving.Wait()
	moving.Go(func() {
		for range rounds {
			for range each {
				sp.Open(t, storetest.Spec())
			}
			held := sp.Claim(t, "w", each)
			for i := range held {
				sp.Report(t, &held[i], "out", "")
			}
		}
	})
	var got []int64
	for last := "0"; len(got) < 3*rounds*each; {
		s := follow(t, url, "", "Last-Event-ID", last)
		s.next(t)
		for range 5 + len(got)%7 { // so that its token does not ask too often
			if len(got) < 3*rounds*each {
				got = append(got, s.event(t).Seq)
			}
		}
		last = strconv.FormatInt(got[len(got)-1], 10)
		s.close()
	}
	moving.Wait()
	events, err := sp.Store.Events(t.Context(), 0, len(got)+1)
	if err != nil || len(events) != len(got) {
		t.Fatalf("%d events, %v, want %d", len(events), err, len(got))
	}
	for i, e := range events {
		if got[i] != e.Seq {
			t.Fatalf("event %d is %d, want %d", i, got[i], e.Seq)
		}
	}
}

// Where events may be missing a client is told so, and gets what happens after that.
func TestEventsAreMissing(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	url := served(t, apiOf(t, sp))
	for range 3 {
		sp.Open(t, storetest.Spec())
	}
	keep := newest(t, sp)
	if err := sp.Raw.XTrimMinID(t.Context(), sp.Key("events"), strconv.FormatInt(keep, 10)).Err(); err != nil {
		t.Fatal(err)
	}
	s := follow(t, url, "", "Last-Event-ID", "1")
	s.begun(t, 1)
	missing := func(after int64) {
		t.Helper()
		last := newest(t, sp)
		want := message{strconv.FormatInt(last, 10), "gap", fmt.Sprintf(`{"after":%d,"newest":%d}`, after, last), ""}
		if m := s.next(t); m != want {
			t.Fatalf("%+v, want %+v", m, want)
		}
		if id, e := sp.Open(t, storetest.Spec())[0], s.event(t); e.ID != id {
			t.Fatalf("%+v after the gap, want one of task %d", e, id)
		}
	}
	missing(1)
	last := newest(t, sp)
	if err := sp.Raw.Del(t.Context(), sp.Key("events")).Err(); err != nil {
		t.Fatal(err)
	}
	missing(last)
}

// Filters leave events out; their numbers are told nevertheless, so that nobody goes on far back.
func TestEventsFiltered(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	a := apiOf(t, sp)
	a.streams.silence = 50 * time.Millisecond
	url := served(t, a)
	ids := sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec())
	held := sp.Claim(t, "w", 3)
	for i := range held {
		sp.Report(t, &held[i], "out", "")
	}
	s := follow(t, url, fmt.Sprintf("?after=0&task=%d,%d&to=running,executed", ids[0], ids[2]))
	s.begun(t, 0)
	var got []string
	for range 4 {
		e := s.event(t)
		got = append(got, fmt.Sprint(e.ID, " ", e.To))
	}
	if all, want := fmt.Sprint(got), fmt.Sprintf("[%d running %[2]d running %[1]d executed %[2]d executed]", ids[0], ids[2]); all != want {
		t.Errorf("got %s, want %s", all, want)
	}
	sp.Open(t, storetest.Spec())
	if m, want := s.next(t), (message{id: strconv.FormatInt(newest(t, sp), 10), comment: "still here"}); m != want {
		t.Errorf("%+v, want %+v", m, want)
	}
	wait.Eventually(t, time.Minute, func() bool { return <-s.messages == message{comment: "still here"} }, "no comment without news")
}

// An event that cannot be read is left out.
func TestEventsUnreadable(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	a := apiOf(t, sp)
	a.streams.silence = 50 * time.Millisecond
	s := follow(t, served(t, a), "")
	s.begun(t, 0)
	if err := sp.Raw.Do(t.Context(), "XADD", sp.Key("events"), "999999-0", "id", "none").Err(); err != nil {
		t.Fatal(err)
	}
	if m := s.next(t); m != (message{id: "999999", comment: "still here"}) {
		t.Errorf("%+v", m)
	}
}

// A number that cannot be, and a filter that cannot, are refused by name.
func TestEventsRefused(t *testing.T) {
	t.Parallel()
	a := apiOf(t, storetest.New(t))
	for _, c := range []struct{ query, last, where string }{
		{"", "x", "header.Last-Event-ID"}, {"", "-1", "header.Last-Event-ID"}, {"", "99999999999999999999", "header.Last-Event-ID"},
		{"?after=-1", "", "query.after"}, {"?after=1.5", "", "query.after"}, {"?after=x", "7", "query.after"},
		{"?task=0", "", "query.task[0]"}, {"?task=7,x", "", "query.task"}, {"?to=running,nowhere", "", "query.to[1]"}, {"?from=open", "", "query.from"},
	} {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, request(t.Context(), t, http.MethodGet, "", "/events"+c.query, "Last-Event-ID", c.last))
		wantProblem(t, w, http.StatusUnprocessableEntity, c.where)
	}
}

// HEAD says what a stream would be, and ends.
func TestEventsHead(t *testing.T) {
	t.Parallel()
	a := apiOf(t, storetest.New(t))
	w := httptest.NewRecorder()
	a.ServeHTTP(w, request(t.Context(), t, http.MethodHead, "", "/events"))
	if w.Code != http.StatusOK || w.Body.Len() > 0 || w.Header().Get("Content-Type") != "text/event-stream" || len(a.streams.events) != 0 {
		t.Errorf("%d %v %q, %d open", w.Code, w.Header(), w.Body, len(a.streams.events))
	}
}

// A stream outlives the limits of the server for a request and an answer, and says that it is there; also where a deadline between two
// writes would end it.
func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	const limit = 4 * time.Second
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			a := apiOf(t, sp)
			a.streams.silence, a.streams.patience = limit*3/4, limit/2
			srv := httptest.NewUnstartedServer(a)
			srv.Config.ReadHeaderTimeout, srv.Config.ReadTimeout, srv.Config.WriteTimeout = time.Minute, limit, limit
			srv.EnableHTTP2 = http2
			if http2 {
				srv.StartTLS()
			} else {
				srv.Start()
			}
			t.Cleanup(srv.Close)
			s := followBy(t, srv.Client(), srv.URL, "")
			s.begun(t, 0)
			if s.reply.Proto != name {
				t.Errorf("spoken is %s", s.reply.Proto)
			}
			for range 2 {
				if m := wait.Receive(t, time.Minute, s.messages, "no comment"); m != (message{comment: "still here"}) {
					t.Errorf("%+v", m)
				}
			}
			id := sp.Open(t, storetest.Spec())[0]
			if e := s.event(t); e.ID != id {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A client that does not read is cut off.
func TestEventsUnread(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	a := apiOf(t, sp)
	log := make(lines, 10)
	a.log = slog.New(slog.NewTextHandler(log, nil))
	a.streams.patience = 300 * time.Millisecond
	srv := httptest.NewUnstartedServer(a)
	const few = 4 << 10
	srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(few)
		}
		return ctx
	}
	srv.Start()
	t.Cleanup(srv.Close)
	const all = 3000
	for range all / 100 {
		specs := make([]task.Definition, 100)
		for i := range specs {
			specs[i] = storetest.Spec()
		}
		sp.Open(t, specs...)
	}
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(few)
	}
	if err := request(t.Context(), t, http.MethodGet, srv.URL, "/events?after=0").Write(c); err != nil {
		t.Fatal(err)
	}
	if line := wait.Receive(t, time.Minute, log, "nobody is cut off"); !strings.Contains(line, "events has ended") || !strings.Contains(line, "timeout") {
		t.Errorf("the log says %q", line)
	}
	wait.Eventually(t, time.Minute, func() bool {
		return len(a.streams.events) == 0
	}, "the stream is still open")
}

// lines are those of a log.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// A daemon that stops ends its streams at once, and in good order.
func TestEventsStop(t *testing.T) {
	t.Parallel()
	url, stop := stopping(t, apiOf(t, storetest.New(t)))
	open := []*reader{follow(t, url, ""), follow(t, url, "")}
	for _, s := range open {
		s.begun(t, 0)
	}
	stop()
	for _, s := range open {
		if s.ended(t); !errors.Is(s.err, io.EOF) || errors.Is(s.err, io.ErrUnexpectedEOF) {
			t.Errorf("a stream ended with %v, want its end", s.err)
		}
	}
}

// There are at most so many streams at once; one that has ended makes room.
func TestEventsLimit(t *testing.T) {
	t.Parallel()
	a := apiOf(t, storetest.New(t))
	a.streams.events = make(room, 2)
	url := served(t, a)
	first := follow(t, url, "")
	follow(t, url, "")
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, request(t.Context(), t, http.MethodHead, url, "/events"))
		return w
	}
	w := ask()
	wantProblem(t, w, http.StatusServiceUnavailable, "2 streams of events are open")
	if after := w.Header().Get("Retry-After"); after != "1" {
		t.Errorf("Retry-After is %q", after)
	}
	first.close()
	wait.Eventually(t, time.Minute, func() bool { return ask().Code == http.StatusOK }, "there is no room again")
}

// While Redis is away a stream stays open; then it goes on.
func TestEventsWithoutRedis(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	proxy := sp.Server.Proxy(t)
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	through := *sp
	through.Where.Host = host
	if through.Where.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	a := apiOf(t, &through)
	a.streams.silence = 100 * time.Millisecond
	s := follow(t, served(t, a), "")
	s.begun(t, 0)
	proxy.Down()
	for range 5 {
		if m := wait.Receive(t, time.Minute, s.messages, "the stream has ended"); m != (message{comment: "still here"}) {
			t.Errorf("%+v", m)
		}
	}
	proxy.Up()
	id := sp.Open(t, storetest.Spec())[0]
	if e := s.event(t); e.ID != id {
		t.Errorf("%+v, want one of task %d", e, id)
	}
}

// A stream ends once its token is not valid any more, but not because that cannot be asked.
func TestEventsOfARevokedToken(t *testing.T) {
	t.Parallel()
	a := apiOf(t, storetest.New(t))
	secret := secretOf(t)
	var asked atomic.Int64
	var revoked atomic.Bool
	a.streams.recheck = 20 * time.Millisecond
	a.streams.authenticate = func(_ context.Context, text string) (task.Token, error) {
		asked.Add(1)
		if text != secret || revoked.Load() {
			return task.Token{}, fmt.Errorf("token x: %w", task.ErrToken)
		}
		return task.Token{}, task.ErrUnreachable
	}
	s := follow(t, served(t, a), "")
	s.begun(t, 0)
	wait.Eventually(t, time.Minute, func() bool { return asked.Load() >= 3 }, "the token is not looked at again")
	revoked.Store(true)
	if s.ended(t); !errors.Is(s.err, io.EOF) {
		t.Errorf("the stream ended with %v", s.err)
	}
}
