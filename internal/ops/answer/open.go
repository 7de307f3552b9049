package answer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
func ReadTask(spec *task.Spec, text string, now time.Time) error {
	object, err := readObject(text)
	if err != nil {
		return err
	}
	if object["argv"] != nil && object["input"] != nil {
		return errors.New("fields input and argv exclude each other; give one of them")
	}
	known := readFields()
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("field %q is unknown; %s", name, Meant(name, known, "known are "+strings.Join(known, ", ")))
		}
		if err := spec.SetJSON(name, object[name], now); err != nil {
			return err
		}
	}
	return nil
}

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

func readObject(text string) (object map[string]json.RawMessage, err error) {
	if json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return object, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text)) // it tells an object with something behind it from none
	if err := decoder.Decode(&object); err != nil || object == nil {
		return nil, fmt.Errorf(`not a JSON object such as {"program":"p","source":"s","input":"1 2"}: %w`, cmp.Or(err, errors.New("it is null")))
	}
	return nil, errors.New("something follows the JSON object; write one object a line")
}

// Meant asks for the known name that is nearest to an unknown one; if none is
// near, it is the remedy given.
func Meant(name string, known []string, remedy string) string {
	if near := task.Nearest(name, known); near != "" {
		return "did you mean " + strconv.Quote(near) + "?"
	}
	return remedy
}
