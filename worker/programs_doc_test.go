package worker

import (
	"os"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/task"
)

// The page for authors of programs names every variable there is.
func TestVariablesAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/PROGRAMS.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	o := s.options(t, s.Store)
	o.Env = "e"
	w, err := assemble(o)
	if err != nil {
		t.Fatal(err)
	}
	tk := &tasks.Claimed{Resources: map[string]task.Allotted{"gpu": {Count: 1, IDs: []int{0}}}}
	tk.Task.EndBefore, tk.Spec.Needs = 1, []task.Need{{Task: 1}}
	r := &round{Claimed: tk, worker: w, slot: w.slots[0]}
	for name := range r.variables() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/PROGRAMS.md does not name %s", name)
		}
	}
}
