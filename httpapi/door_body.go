package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// doorRequest is a request with the members of its body. Those that nobody asks for are ignored.
type doorRequest struct {
	*caller

	http    *http.Request
	members map[string]json.RawMessage
	list    []json.RawMessage // a body that is one
}

// mostList is the longest body that is a list.
const mostList = 16 << 20

// read reads the body: a JSON object, or a list, or nothing.
func (q *doorRequest) read(w http.ResponseWriter, list bool) error {
	if q.http.Method != http.MethodPost && q.http.Method != http.MethodPut {
		return nil
	}
	most := int64(mostBody)
	if list {
		most = mostList
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every connection has deadlines
	text, err := io.ReadAll(http.MaxBytesReader(w, q.http.Body, most))
	_ = rc.SetReadDeadline(time.Time{})
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return newProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body may have at most %d bytes; nothing was done", most))
	} else if err != nil {
		return newProblem(http.StatusBadRequest, fmt.Sprintf("the body cannot be read: %v; nothing was done", err))
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil
	}
	if said := q.http.Header.Get("Content-Type"); said != "" {
		if kind, _, _ := mime.ParseMediaType(said); kind != oneTask {
			return newProblem(http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Type %q: send %s", said, oneTask))
		}
	}
	return q.parse(text, list)
}

// parse reads the text of a body.
func (q *doorRequest) parse(text []byte, list bool) error {
	valid := utf8.Valid(text)
	if list && (!valid || json.Unmarshal(text, &q.list) != nil) {
		return newProblem(http.StatusBadRequest, `the body is not a JSON array, such as [{"n": 1}], in UTF-8; nothing was done`)
	}
	if !list && (!valid || json.Unmarshal(text, &q.members) != nil || q.members == nil) {
		return newProblem(http.StatusBadRequest, `the body is not a JSON object, such as {"fid": 1}, in UTF-8; nothing was done`)
	}
	return nil
}

// number is a number in the path, or 0, which nothing has, if there is another text.
func (q *doorRequest) number(name string) int64 {
	n, err := strconv.ParseInt(q.http.PathValue(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// member is a member of the body, nil if it is missing or null.
func (q *doorRequest) member(name string) json.RawMessage {
	raw := bytes.TrimSpace(q.members[name])
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func (q *doorRequest) has(name string) bool { return q.member(name) != nil }

// bad refuses a member of the body.
func (q *doorRequest) bad(name, want string) error {
	const most = 100
	if !q.has(name) {
		want = "there; give " + want
	}
	return &statemachine.FieldError{Field: name, Value: clean.Line(string(q.member(name)), most), Want: want}
}

// text is a text of at most so many bytes, at least one.
func (q *doorRequest) text(name string, most int) (text string, err error) {
	raw := q.member(name)
	const replaced = "\uFFFD" // for half a surrogate pair: two texts would become one
	halves := func() bool {
		return strings.Contains(text, replaced) && !strings.Contains(string(raw), replaced) &&
			!strings.Contains(strings.ToLower(string(raw)), `\ufffd`)
	}
	if json.Unmarshal(raw, &text) != nil || text == "" || len(text) > most || strings.ContainsRune(text, 0) || halves() {
		return "", q.bad(name, fmt.Sprintf("a text of 1 to %d bytes without NUL characters and unpaired surrogates", most))
	}
	return text, nil
}

// whole is a whole number that is not negative.
func (q *doorRequest) whole(name string) (int64, error) {
	n, err := strconv.ParseInt(string(q.member(name)), 10, 64)
	if err != nil || n < 0 {
		return 0, q.bad(name, "a whole number that is not negative; write for example 7")
	}
	return n, nil
}

// moment is a time in seconds since 1970.
func (q *doorRequest) moment(name string) (time.Time, error) {
	t, err := statemachine.ParseTime(string(q.member(name)))
	if err != nil || t == 0 || t == statemachine.Never {
		return time.Time{}, q.bad(name, "a number of seconds since 1970, above 0 and before the year 10000; write for example 1795230670.5, "+
			"or 1 for at once")
	}
	return task.Moment(t), nil
}

// mostParams is how many bytes parameters may have: a series keeps them beside the key.
const mostParams = 32 << 10

// params are parameters as tasks have them, nil for none.
func (q *doorRequest) params() (json.RawMessage, error) {
	text, err := task.Parse("params", string(q.member("params")))
	if err == nil && len(text) > mostParams {
		err = &statemachine.FieldError{
			Field: "params", Value: strconv.Itoa(len(text)) + " bytes",
			Want: fmt.Sprintf("at most %d bytes; name a file or a row instead", mostParams),
		}
	}
	if err != nil || text == "" {
		return nil, err
	}
	return json.RawMessage(text), nil
}

// env is a name of an environment.
func (q *doorRequest) env(name string) (string, error) {
	const most = 64
	env, err := q.text(name, most)
	if err == nil && task.CheckEnv(env) != nil {
		err = q.bad(name, "1 to 64 letters, digits, dots, underscores and dashes; write for example python")
	}
	return env, err
}

// epoch is a moment in seconds since 1970, as a JSON number.
func epoch(t time.Time) json.Number { return json.Number(task.MomentText(t)) }
