package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Remote is the site behind a server's HTTP address, such as https://tdf.example.org:7480, for the worker of a name, whose
// access token is of the role work: see [Gateway]. Nothing is asked yet. The error is a *statemachine.FieldError about site or token,
// which does not have the token.
func Remote(site, name, token string) (Backend, error) {
	u, err := url.Parse(site)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, &statemachine.FieldError{
			Field: "url", Value: redacted(site), Want: "the address of a server; write for example https://tdf.example.org:7480",
		}
	}
	if token == "" || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, &statemachine.FieldError{Field: "token", Value: "****", Want: "a token, as tdf-manager token add prints it"}
	}
	address := strings.TrimRight(u.String(), "/")
	return &remote{
		address: address, base: address + "/api/v1/workers/" + url.PathEscape(name), name: name, token: token, client: newClient(),
		prefix: newToken(), held: map[int64]Claimed{},
	}, nil
}

// redacted is a URL without what may be a password.
func redacted(site string) string {
	if u, err := url.Parse(site); err == nil {
		return u.Redacted()
	}
	return "****"
}

// remote is a [Backend] over HTTP.
type remote struct {
	address, base, name, token string
	client                     *http.Client

	mu      sync.Mutex
	session int64             // that was begun last
	yields  bool              // tasks of a former session are given up when it registers
	prefix  string            // of the names of its claims
	last    string            // the claim that was sent last, and its number
	number  int               // which rises
	held    map[int64]Claimed // tasks whose report was not answered yet
}

// mark tells the site from others of this host.
func (r *remote) mark() string {
	sum := sha256.Sum256([]byte(r.address))
	return hex.EncodeToString(sum[:4])
}

const (
	// answerTime is how long an answer may take, beside the time that was asked for, and a large body.
	answerTime = 30 * time.Second
	// longestAnswer bounds what is read of one of JSON, in bytes.
	longestAnswer = 256 << 20
)

// newClient sends the token nowhere else: it follows no redirects.
func newClient() *http.Client {
	t, ok := http.DefaultTransport.(*http.Transport)
	if ok {
		const idle = 64
		t = t.Clone()
		t.MaxIdleConnsPerHost, t.ResponseHeaderTimeout = idle, mostWait+answerTime
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: answerTime / 2, PingTimeout: answerTime / 2}
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// refusal is an answer with an error status.
type refusal struct {
	status int
	detail string
	parts  []refusedPart
	what   string // request and address
}

type refusedPart struct {
	Location string          `json:"location"`
	Message  string          `json:"message"`
	Value    json.RawMessage `json:"value"`
}

// Error says what was refused, why, and what may help.
func (e *refusal) Error() string {
	text := fmt.Sprintf("%s: %d %s", e.what, e.status, http.StatusText(e.status))
	if e.detail != "" {
		text += ": " + e.detail
	}
	switch {
	case e.status == http.StatusUnauthorized, e.status == http.StatusForbidden:
		text += "; give the token of this worker, which tdf-manager token add NAME --role work prints"
	case e.status >= http.StatusMultipleChoices && e.status < http.StatusBadRequest:
		text += ": the token is not sent elsewhere; give the address of the server itself"
	case e.status == http.StatusNotFound:
		text += "; is there a tdf-server with [http] listen at this address?"
	}
	return text
}

// Is reports whether the same request may succeed later, or the session is over.
func (e *refusal) Is(target error) bool {
	switch e.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return target == task.ErrUnreachable
	case http.StatusGone:
		return target == ErrLeaseLost
	default:
		return false
	}
}

// Unwrap is the value that cannot be, if that is why.
func (e *refusal) Unwrap() error {
	if e.status != http.StatusUnprocessableEntity || len(e.parts) == 0 {
		return nil
	}
	part := &e.parts[0]
	want := strings.TrimPrefix(part.Message, "is not ")
	return &statemachine.FieldError{Field: part.Location, Value: oneLine(string(part.Value)), Want: want}
}

// noAnswerError is why there was none: the same request may succeed later.
type noAnswerError struct {
	what string
	err  error
}

// Error names the request.
func (e *noAnswerError) Error() string { return e.what + ": " + e.err.Error() }

// Unwrap returns the cause.
func (e *noAnswerError) Unwrap() error { return e.err }

// Is reports whether target is task.ErrUnreachable.
func (e *noAnswerError) Is(target error) bool { return target == task.ErrUnreachable }

// call sends a request with a body of JSON, if in is not nil, and reads the answer into out, if that is not nil. It may take d
// longer than others.
func (r *remote) call(ctx context.Context, method, path string, in, out any, d time.Duration) error {
	var text []byte
	if in != nil {
		var err error
		if text, err = json.Marshal(in); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d+answerTime)
	defer cancel()
	for {
		header, err := r.send(ctx, method, path, bytes.NewReader(text), int64(len(text)), "application/json", func(body io.Reader) error {
			if out == nil {
				return nil
			}
			return json.NewDecoder(io.LimitReader(body, longestAnswer)).Decode(out)
		})
		if e, ok := errors.AsType[*refusal](err); !ok || e.status != http.StatusTooManyRequests || !again(ctx, header) {
			return err
		}
	}
}

// again waits as long as a server asks that has had too many requests. It reports whether there is time for that.
func again(ctx context.Context, header http.Header) bool {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds > int(answerTime/time.Second) {
		return false
	}
	timing.Pause(ctx, time.Duration(max(1, seconds))*time.Second)
	return ctx.Err() == nil
}

// send sends a request with a body of that many bytes of a kind, and gives read the answer.
func (r *remote) send(
	ctx context.Context, method, path string, content io.Reader, size int64, kind string, read func(io.Reader) error,
) (http.Header, error) {
	what := method + " " + r.base + path
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, io.NopCloser(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	req.ContentLength = size
	if size == 0 {
		req.Body = http.NoBody
	} else {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	answer, err := r.client.Do(req)
	if err != nil {
		return nil, &noAnswerError{what, because(ctx, err)}
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	body := answer.Body
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusMultipleChoices {
		return answer.Header, refused(what, answer.StatusCode, body)
	}
	if err := read(body); err != nil {
		return answer.Header, &noAnswerError{what, because(ctx, err)}
	}
	_, _ = io.CopyN(io.Discard, body, 1) // so that the connection can be used again
	return answer.Header, nil
}

// because is an error of the client with the cause of the end of ctx; the URL stands in the text once.
func because(ctx context.Context, err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return err
}

// refused reads a problem.
func refused(what string, status int, body io.Reader) error {
	var problem struct {
		Detail string        `json:"detail"`
		Errors []refusedPart `json:"errors"`
	}
	const most = 64 << 10
	_ = json.NewDecoder(io.LimitReader(body, most)).Decode(&problem) // a proxy has other words
	return &refusal{status: status, detail: oneLine(problem.Detail), parts: problem.Errors, what: what}
}

// statusOf is that of a refusal, 0 for another error.
func statusOf(err error) int {
	if e, ok := errors.AsType[*refusal](err); ok {
		return e.status
	}
	return 0
}
