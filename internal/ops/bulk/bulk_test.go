package bulk

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Ids and words, sorted and joined.
func TestFilterTasks(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"7": {"7"}, "3-9": {"3-9"}, "1,3,5-8": {"1,3", "5-8"}, "1-2,3-4": {"3-4,1-2", "2"}, "": {"all"}, "5,12": {"last", "5"},
	} {
		sel, err := (&Filter{Tasks: args}).Selection(func() (Last, error) { return Last{Task: 12}, nil })
		var texts []string
		for _, r := range sel.IDs {
			texts = append(texts, strings.TrimSuffix(fmt.Sprintf("%d-%d", r.First, r.Last), "-"+strconv.FormatInt(r.First, 10)))
		}
		if got := strings.Join(texts, ","); err != nil || got != want || sel.All != (want == "") {
			t.Errorf("%q is %q, %v, want %q", args, got, err, want)
		}
	}
	if sel, err := (&Filter{}).Selection(nil); sel.IDs != nil || sel.All || err != nil {
		t.Errorf("nothing is %+v, %v", sel, err)
	}
}

// A job stands alone, as all its tasks; so does last, where the task opened last is of one.
func TestFilterJob(t *testing.T) {
	t.Parallel()
	last := func() (Last, error) { return Last{Task: 12, Job: 4}, nil }
	for want, words := range map[task.PlanID]string{7: "j7", 4: "last"} {
		f := Filter{Tasks: []string{words}}
		if sel, err := f.Selection(last); err != nil || sel.Plan != want || !sel.All || sel.IDs != nil || !f.Narrow() || !f.OnlyJob() {
			t.Errorf("%q is %+v, %v", words, sel, err)
		}
		f.States = []string{"failed"}
		if sel, err := f.Selection(last); err != nil || sel.Plan != want || f.OnlyJob() {
			t.Errorf("failed ones of %q are %+v, %v", words, sel, err)
		}
	}
	if id, err := ParseID("last", last); err != nil || id != 12 {
		t.Errorf("the last task is %d, %v", id, err)
	}
}

// A filter that cannot be read says which of its fields is wrong.
func TestFilterRefuses(t *testing.T) {
	t.Parallel()
	last := func() (Last, error) { return Last{Task: 12}, nil }
	for want, f := range map[string]Filter{
		`state "lost" is not a state; write one of blocked, `: {States: []string{"open", "lost"}},
		`match "(" is not a regular expression: `:             {Match: "("},
		`tasks "all": all stands alone`:                       {Tasks: []string{"1", "all"}},
		`tasks "5-3": write task ids`:                         {Tasks: []string{"5-3"}},
		`tasks "j7": a job stands alone`:                      {Tasks: []string{"1,j7"}},
		`tasks "j0": write task ids`:                          {Tasks: []string{"j0"}},
		`tasks "1-99999999999": more than 10000000 tasks`:     {Tasks: []string{"1-99999999999"}},
	} {
		var wrong *FilterError
		if _, err := f.Selection(last); !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
	if sel, err := (&Filter{Queue: "q"}).Selection(last); err != nil || !sel.All {
		t.Errorf("a condition alone: %+v, %v", sel, err)
	}
	for _, text := range []string{"", "0", "x", "3-4", "all", "j7"} {
		if id, err := ParseID(text, last); err == nil {
			t.Errorf("%q is task %d", text, id)
		}
	}
}

// Many tasks are changed page by page, and what became of each is counted.
func TestTally(t *testing.T) {
	t.Parallel()
	var tally Tally
	tally.AddChanges([]manager.Change{
		{ID: 1, Before: statemachine.Open, After: statemachine.Cancelled}, {ID: 2, Err: task.ErrNoTask},
		{ID: 3, Before: statemachine.Failed, Err: &statemachine.TransitionError{}}, {ID: 4, Err: task.ErrPurged},
	}, func(c *manager.Change) string { return string(c.After) })
	tally.AddRetried([]manager.Retried{{ID: 5, New: 7}, {ID: 6, New: 8, Existing: true}})
	if len(tally.Done["cancelled"]) != 1 || tally.Done["opened"][0].New != 7 || tally.Done["existing"][0].New != 8 {
		t.Errorf("done %+v", tally.Done)
	}
	if len(tally.Missing) != 1 || len(tally.Refused) != 2 || !tally.Refused[0].WrongState() || tally.Refused[1].WrongState() {
		t.Errorf("missing %v, refused %+v", tally.Missing, tally.Refused)
	}
}
