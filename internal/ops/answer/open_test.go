package answer

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/task"
)

// The members of an object are those that encoding/json finds, as they are written; what it refuses is refused.
func FuzzReadObject(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { } `, `{"a":1}`, "\t{ \"a\" :\r\n 1 , \"b\":null}\r", `{"a":1,"b":{"c":[1,"}",{"d":"]"}]},"e":[]}`, `{"a":"x\\","b":"\",:{"}`,
		`{"a":1,"a":2,"b":3,"a":4}`, `{"\u0061rgv":[1],"input":"x"}`, `{"source":"s","source\u0000":"t"}`, `{"":1}`, "{\"\xff\":\"\xff\"}",
		`{"a":"ÿ ,"}`, `null`, `[]`, `"{}"`, ``, `{`, `{"a"}`, `{"a":1,}`, `{"a":1}{`, `{"a":1} x`, `{a:1}`, `{"a":'x'}`, "\u00a0{}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want map[string]json.RawMessage
		refused := json.Unmarshal([]byte(text), &want) != nil || want == nil
		members, err := readObject([]byte(text))
		if (err != nil) != refused {
			t.Fatalf("%q: %v", text, err)
		}
		got := map[string]json.RawMessage{}
		for i, m := range members {
			if i > 0 && m.name < members[i-1].name {
				t.Errorf("%q: %q comes behind %q", text, m.name, members[i-1].name)
			}
			got[m.name] = m.value
		}
		same := func(a, b json.RawMessage) bool { return string(a) == string(b) }
		if err == nil && !maps.EqualFunc(got, want, same) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	})
}

// Texts of tasks mean what they mean to encoding/json.
func TestReadTaskTexts(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`"x"`, `""`, `"\u0041\n"`, `"\""`, `"\\"`, `"\ud83d\ude00 ÿ"`, `"\ud83d"`, "\"\xff\"", "\"\ufffd\"", "\"\u007f\"", `"a,b:{}"`,
	} {
		var want string
		if err := json.Unmarshal([]byte(raw), &want); err != nil {
			t.Fatal(err)
		}
		var spec task.Spec
		if err := ReadTask(&spec, []byte(`{"input": `+raw+` }`), time.Time{}); err != nil || spec.Input != want {
			t.Errorf("%q: %q, %v, want %q", raw, spec.Input, err, want)
		}
	}
	for text, says := range map[string]string{
		"{\"input\":\"\n\"}":              "not a JSON object",
		`{"input":"a","argv":[],"x":1}`:   "exclude each other",
		`{"queue":1,"color":2,"zebra":3}`: `"color" is unknown`,
		`{"color":2,"meta":"x","env":1}`:  `"color" is unknown`,
		`{"meta":"x","zebra":3}`:          "field meta",
		`{"hold":"","source":"s"}`:        "field hold",
		`{"argv":"x"}`:                    "not a list of texts",
		`{"queue":1,"queue":"q"}`:         "",
	} {
		err := ReadTask(new(task.Spec), []byte(text), time.Time{})
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// Of many tasks that are opened at once, reading the texts must not be what takes longest.
func TestReadTaskAllocatesLittle(t *testing.T) {
	line, spec := []byte(`{"source":"command:true","input":"12345"}`), new(task.Spec)
	const most = 6 // 18 if encoding/json makes a map of the members
	got := testing.AllocsPerRun(100, func() {
		if err := ReadTask(spec, line, time.Time{}); err != nil {
			t.Fatal(err)
		}
	})
	if got > most {
		t.Errorf("a task allocates %.0f times, want at most %d", got, most)
	}
}
