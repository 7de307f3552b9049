package archive

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/statemachine"
)

// Every byte of every field survives, also what is no text, and JSON stays on one line.
func TestRecordKeepsEveryByte(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		fields := rapid.MapOf(text, text).Draw(t, "fields")
		fields["=\xff"], fields["=name"], fields["0:output"] = "v", "\xfe", "a\x00\u2028<&>\xff\n"
		r := NewRecord(7, 3, statemachine.Failed, fields)
		line, err := r.Line()
		if err != nil || bytes.IndexByte(line, '\n') != len(line)-1 || !json.Valid(line) {
			t.Fatalf("%q, %v", line, err)
		}
		again, err := ParseRecord(line)
		if err != nil || again.Head != r.Head || !maps.Equal(again.Fields, fields) {
			t.Fatalf("%+v, %v, want %+v", again, err, r)
		}
		if h, err := parseHead(line); err != nil || h != r.Head {
			t.Fatalf("%+v, %v, want %+v", h, err, r.Head)
		}
	})
}

// What tells tasks apart comes from what Redis has of them.
func TestRecordHead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fields map[string]string
		want   string
	}{
		"plain":       {map[string]string{"0:open": "5.5", "rev": "9"}, "5.5"},
		"was held":    {map[string]string{"0:open": "7", "0:blocked": "6"}, "6"},
		"only held":   {map[string]string{"0:blocked": "6"}, "6"},
		"kept apart":  {map[string]string{"0:open": "7", "0:blocked": "6", "created": "5"}, "5"},
		"of a friend": {map[string]string{"0:open": "x"}, "x"},
		"nothing":     {map[string]string{}, ""},
	} {
		r := NewRecord(1, 1, statemachine.Failed, c.fields)
		if r.Created != c.want {
			t.Errorf("%s: created %q, want %q", name, r.Created, c.want)
		}
	}
	r := NewRecord(1, 1, statemachine.Failed, map[string]string{"rev": "9", "round": "2", "2:archived": "8.25"})
	if r.Rev != 9 || r.Archived != "8.25" || r.ArchivedAt() != 8_250_000 || r.Outcome != "failed" {
		t.Errorf("%+v", r.Head)
	}
	given := map[string]string{"input": "1", "variables": `{"A":"canary","B":""}`}
	r = NewRecord(1, 1, statemachine.Failed, given)
	if r.Fields["variables"] != `{"A":"***","B":"***"}` || r.Fields["input"] != "1" || given["variables"] != `{"A":"canary","B":""}` {
		t.Errorf("the archive has %v, of %v", r.Fields, given)
	}
}

func TestRefusedRecords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"v":2,"id":7,"fields":{}}`: "newer TDF",
		`{"v":1,"id":0,"fields":{}}`: "id is 0",
		`{"id":7,"fields":{}}`:       "v is 0",
		`[]`:                         "not the record",
		`x`:                          "not the record",
		`{"v":1,"id":7,"fields":{},"base64":{"a":"_"}}`:         `field "a"`,
		`{"v":1,"id":7,"fields":{},"base64":{"=_":"aGVsbG8="}}`: "illegal base64",
	} {
		if _, err := ParseRecord([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if r, err := ParseRecord([]byte(`{"v":1,"id":7}`)); err != nil || r.Fields == nil {
		t.Errorf("%+v, %v, want a record without fields", r, err)
	}
	if h, err := parseHead([]byte(`{"id":7,"v":1}`)); err != nil || h.ID != 7 {
		t.Errorf("a head in another order: %+v, %v", h, err)
	}
}
