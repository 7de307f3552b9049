package archive

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tdf-go/tdf/statemachine"
)

// Version is that of the lines and manifests. Readers refuse a higher one.
const Version = 1

// Head is what is known of a record without reading all of it.
type Head struct {
	V  int   `json:"v"`
	ID int64 `json:"id"`
	// Created is when the task was opened, as a text of Redis: after a flush ids begin again, and this tells tasks apart.
	Created string `json:"created"`
	// Rev is the revision at which the task was read, Epoch the one in which it was.
	Rev   int64 `json:"rev"`
	Epoch int64 `json:"epoch"`
	// Outcome is how the task ended, Archived when it was archived, as a text of Redis.
	Outcome  string `json:"outcome"`
	Archived string `json:"archived"`
}

// Record is an archived task.
type Record struct {
	Head

	// Fields are all fields of its hash in Redis, byte for byte.
	Fields map[string]string
}

// line is the form of a record in a segment. JSON has no bytes that are no UTF-8: such values are in Base64.
type line struct {
	Head

	Fields map[string]string `json:"fields"`
	Base64 map[string]string `json:"base64,omitempty"`
}

// codedName begins the name of a field in line.Base64 that is in base64 itself.
const codedName = "="

// NewRecord makes the record of an archived task from the fields of its hash, which it keeps.
func NewRecord(id, epoch int64, outcome statemachine.State, fields map[string]string) Record {
	r := Record{Head: Head{V: Version, ID: id, Epoch: epoch, Outcome: string(outcome)}, Fields: fields}
	r.Created = cmp.Or(fields["created"], earliest(fields["0:open"], fields["0:blocked"]))
	r.Archived = fields[fields["round"]+":"+string(statemachine.Archived)]
	if n, err := json.Number(fields["rev"]).Int64(); err == nil {
		r.Rev = n
	}
	return r
}

// earliest is the earlier one of two moments of which one may be missing.
func earliest(a, b string) string {
	at, errA := statemachine.ParseTime(a)
	bt, errB := statemachine.ParseTime(b)
	if errA == nil && (errB != nil || at <= bt) {
		return a
	}
	return cmp.Or(b, a)
}

// ArchivedAt is when the task was archived; 0 if that was not recorded.
func (h *Head) ArchivedAt() statemachine.Time {
	at, err := statemachine.ParseTime(h.Archived)
	if err != nil {
		return 0
	}
	return at
}

// Line is the record as one line of JSON, with its end.
func (r *Record) Line() ([]byte, error) {
	l := line{Head: r.Head, Fields: make(map[string]string, len(r.Fields))}
	for name, value := range r.Fields {
		if utf8.ValidString(name) && utf8.ValidString(value) {
			l.Fields[name] = value
			continue
		}
		if l.Base64 == nil {
			l.Base64 = map[string]string{}
		}
		if !utf8.ValidString(name) || strings.HasPrefix(name, codedName) {
			name = codedName + base64.StdEncoding.EncodeToString([]byte(name))
		}
		l.Base64[name] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(l); err != nil {
		return nil, fmt.Errorf("task %d: %w", r.ID, err)
	}
	return out.Bytes(), nil
}

// ParseRecord reads what [Record.Line] has written.
func ParseRecord(text []byte) (Record, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return Record{}, fmt.Errorf("not the record of a task: %w", err)
	}
	if err := l.check(); err != nil {
		return Record{}, err
	}
	r := Record{Head: l.Head, Fields: l.Fields}
	if r.Fields == nil {
		r.Fields = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(l.Base64)) {
		value, err := base64.StdEncoding.DecodeString(l.Base64[name])
		if coded, is := strings.CutPrefix(name, codedName); is && err == nil {
			var plain []byte
			plain, err = base64.StdEncoding.DecodeString(coded)
			name = string(plain)
		}
		if err != nil {
			return Record{}, fmt.Errorf("task %d, field %q: %w", r.ID, name, err)
		}
		r.Fields[name] = string(value)
	}
	return r, nil
}

// parseHead reads only the head, which our own lines have in front.
func parseHead(text []byte) (Head, error) {
	var h Head
	if head, _, found := bytes.Cut(text, []byte(`,"fields":`)); found {
		text = append(slices.Clip(head), '}')
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, fmt.Errorf("not the record of a task: %w", err)
	}
	return h, h.check()
}

func (h *Head) check() error {
	switch {
	case h.V > Version:
		return fmt.Errorf("task %d has format %d, and this program knows none above %d: read it with a newer TDF", h.ID, h.V, Version)
	case h.V < 1 || h.ID < 1:
		return fmt.Errorf("not the record of a task: v is %d, id is %d", h.V, h.ID)
	}
	return nil
}
