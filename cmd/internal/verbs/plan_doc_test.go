package verbs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/task"
)

// TestPlanDocument runs the examples of docs/PLANFILE.md: each block of commands with
// the file of the block before it.
func TestPlanDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/PLANFILE.md")
	if err != nil {
		t.Fatal(err)
	}
	checkTaskFieldsNamed(t, string(text))
	t.Chdir(t.TempDir())
	files, commands := 0, 0
	for i, block := range strings.Split(string(text), "```") {
		body, isFile := strings.CutPrefix(block, "yaml\n")
		shown, isRun := strings.CutPrefix(block, "console\n")
		switch {
		case i%2 == 0:
		case isFile:
			files++
			if err := os.WriteFile("plan.yaml", []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		case isRun:
			commands += runShown(t, shown)
		}
	}
	if files < 4 || commands < 5 {
		t.Errorf("%d files, %d commands: the document has others", files, commands)
	}
}

// runShown runs the commands of a block and compares what they say.
func runShown(t *testing.T, block string) (commands int) {
	t.Helper()
	for _, shown := range strings.Split("\n"+block, "\n$ tdf-manager ")[1:] {
		line, want, _ := strings.Cut(shown, "\n")
		r := execute(t.Context(), "", fields(line)...)
		if got := r.out + r.err; strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("tdf-manager %s\nsays  %s\nshown %s", line, got, want)
		}
		commands++
	}
	return commands
}

// checkTaskFieldsNamed wants every field that a step may have in the document.
func checkTaskFieldsNamed(t *testing.T, text string) {
	t.Helper()
	for _, name := range slices.Concat(task.DefinitionNames(), []string{"needs", "foreach"}) {
		if name != "step" && !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the document does not name the field %s", name)
		}
	}
}

// TestPlanFilesOfExamples checks the plan files that are shipped.
func TestPlanFilesOfExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../examples/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if r := execute(t.Context(), "", "plan", "check", file); r.code != 0 {
			t.Errorf("%+v", r)
		}
	}
}
