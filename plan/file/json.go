package file

import (
	"encoding/json"
	"strings"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/store/growth"
)

// itemText stands for a line where a step that is repeated for lines is written.
const itemText = "${item}"

// MarshalJSON writes the task with the names of the file; its needs are places in
// [Plan.Tasks]. Passwords and tokens of its source are masked.
func (t *Task) MarshalJSON() ([]byte, error) {
	object := t.object()
	object["needs"] = append([]TaskNeed{}, t.Needs...)
	return json.Marshal(object) //nolint:wrapcheck // it cannot fail
}

// object is the task without its needs.
func (t *Task) object() map[string]any {
	object := map[string]any{"step": t.Step, "args": t.Args}
	if t.Item != "" && t.Item != growth.Item {
		object["item"] = t.Item
	}
	for i := range t.Fields {
		f := &t.Fields[i]
		if object[f.Name] = f.JSON(); f.Name == "source" {
			object[f.Name] = clean.Source(f.Value.Text)
		}
	}
	return object
}

// MarshalJSON writes the step with the names of the file; a line is ${item}.
func (l *Later) MarshalJSON() ([]byte, error) {
	object := struct {
		Step  string           `json:"step"`
		Lines string           `json:"lines,omitempty"`
		Most  int              `json:"most,omitempty"`
		Needs []Need           `json:"needs"`
		Tasks []map[string]any `json:"tasks"`
	}{Step: l.Tasks[0].Step, Needs: append([]Need{}, l.Needs...)}
	if l.Lines != "" {
		object.Lines, object.Most = l.Lines, l.Most
	}
	for i := range l.Tasks {
		one := l.Tasks[i].object()
		for _, name := range []string{"input", argvField} {
			if raw, is := one[name].(json.RawMessage); is {
				one[name] = json.RawMessage(strings.ReplaceAll(string(raw), `\u0000`, itemText))
			}
		}
		object.Tasks = append(object.Tasks, one)
	}
	return json.Marshal(object) //nolint:wrapcheck // it cannot fail
}
