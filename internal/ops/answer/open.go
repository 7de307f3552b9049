package answer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tdf-go/tdf/task"
)

// Submitted are the tasks of a submission.
type Submitted struct {
	IDs      []int64     `json:"ids"`
	Existing []int64     `json:"existing"` // those that were there before because of their keys
	Fresh    []int64     `json:"-"`        // the others
	Job      task.PlanID `json:"job,omitempty"`
	DryRun   bool        `json:"dry_run"`
	// Count is how many a dry run would open.
	Count *int `json:"count,omitempty"`
}

// Opened is what a submission has opened as tasks of a job, 0 for none.
func Opened(opened []task.Opened, job task.PlanID) *Submitted {
	s := &Submitted{IDs: task.IDs(opened), Existing: []int64{}, Job: job}
	for _, o := range opened {
		if o.Existing {
			s.Existing = append(s.Existing, o.ID)
		} else {
			s.Fresh = append(s.Fresh, o.ID)
		}
	}
	if len(s.Fresh) == 0 {
		s.Job = 0 // it has no tasks, and is gone
	}
	return s
}

// WouldOpen is the answer to a dry run of n tasks.
func WouldOpen(n int) *Submitted {
	return &Submitted{IDs: []int64{}, Existing: []int64{}, DryRun: true, Count: &n}
}

// ReadTask reads the fields of a JSON object, which has the names of Redis' hash fields. Numbers may be numbers or texts; now is
// what times such as +10m count from. What the object leaves out stays in spec.
func ReadTask(spec *task.Spec, text []byte, now time.Time) error {
	members, err := readObject(text)
	if err != nil {
		return err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(members, func(m member) bool { return m.name == name })
	}
	if has("argv") && has("input") {
		return errors.New("fields input and argv exclude each other; give one of them")
	}
	for i, m := range members {
		if i+1 < len(members) && members[i+1].name == m.name {
			continue // the last one counts
		}
		if _, known := knownField(m.name); !known {
			known := readFields()
			return fmt.Errorf("field %q is unknown; %s", m.name, Meant(m.name, known, "known are "+strings.Join(known, ", ")))
		}
		if err := spec.SetJSON(m.name, m.value, now); err != nil {
			return err
		}
	}
	return nil
}

// knownField is the place of a name among those that ReadTask knows.
func knownField(name string) (int, bool) { return slices.BinarySearch(readFields(), name) }

// readFields are the names that ReadTask knows, sorted: of all fields but those of plans.
var readFields = sync.OnceValue(func() []string {
	var names []string
	for _, f := range task.Fields() {
		if !f.Planned {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
})

// member is a member of a JSON object, with its value as it is written.
type member struct {
	name  string
	value json.RawMessage
}

// readObject returns the members of an object by their names. encoding/json takes three times as long to read them into a map: of a
// submission of many tasks that is most of what their texts cost.
func readObject(text []byte) (members []member, err error) {
	text = bytes.Trim(text, blanks)
	if !bytes.HasPrefix(text, []byte("{")) || !json.Valid(text) {
		return nil, notObject(text)
	}
	members = make([]member, 0, 4)
	var name string
	for part, end, rest := cutJSON(text[1:]); len(part) > 0; part, end, rest = cutJSON(rest) {
		if end != ':' {
			members = append(members, member{name, part})
		} else if at, known := knownField(string(part[1 : len(part)-1])); known {
			name = readFields()[at]
		} else {
			_ = json.Unmarshal(part, &name) // it is valid
		}
	}
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return members, nil
}

// blanks are what may be between the parts of JSON.
const blanks = " \t\r\n"

// cutJSON cuts what is in a valid object behind the name or the value that comes first, at a colon, a comma or the last brace.
func cutJSON(text []byte) (part []byte, end byte, rest []byte) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
		case depth == 0 && (c == ':' || c == ',' || c == '}'):
			return bytes.Trim(text[:i], blanks), c, text[i+1:]
		}
	}
	return nil, 0, nil
}

// notObject says why a text is no object, or not one alone.
func notObject(text []byte) error {
	var object map[string]json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(text)) // it tells an object with something behind it from none
	if err := decoder.Decode(&object); err != nil || object == nil {
		return fmt.Errorf(`not a JSON object such as {"program":"p","source":"s","input":"1 2"}: %w`, cmp.Or(err, errors.New("it is null")))
	}
	return errors.New("something follows the JSON object; write one object a line")
}

// Meant asks for the known name that is nearest to an unknown one; if none is
// near, it is the remedy given.
func Meant(name string, known []string, remedy string) string {
	if near := task.Nearest(name, known); near != "" {
		return "did you mean " + strconv.Quote(near) + "?"
	}
	return remedy
}
