package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sm "github.com/tdf-go/tdf/statemachine"
)

// TestDocumentIsUpToDate: "go generate ./statemachine" would change nothing.
func TestDocumentIsUpToDate(t *testing.T) {
	t.Parallel()
	committed, err := os.ReadFile(filepath.FromSlash("../../../docs/STATES.md"))
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "STATES.md")
	if err := run(out); err != nil {
		t.Fatal(err)
	}
	generated, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(generated), string(committed)); diff != "" {
		t.Errorf("docs/STATES.md is not what the table says (run go generate ./statemachine):\n%s", diff)
	}
}

// TestDocumentIsWhole: everything has a meaning, and every row is there.
func TestDocumentIsWhole(t *testing.T) {
	t.Parallel()
	var doc bytes.Buffer
	if err := write(&doc); err != nil {
		t.Fatal(err)
	}
	var explained, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| .*[.] \\|$").FindAllStringSubmatch(doc.String(), -1) {
		explained = append(explained, row[1])
	}
	for _, s := range sm.States() {
		want = append(want, string(s))
	}
	for _, e := range sm.Events() {
		want = append(want, string(e))
	}
	if diff := cmp.Diff(want, explained); diff != "" {
		t.Errorf("not what has a meaning:\n%s", diff)
	}
	for _, row := range sm.Table() {
		if strings.Contains(fenced(), code(string(row.Event))) != row.Fenced {
			t.Errorf("some rows of %s compare the claim, and others do not", row.Event)
		}
		if !strings.Contains(doc.String(), row.Why) || !strings.Contains(doc.String(), string(row.When)) {
			t.Errorf("%s, %s -> %s is missing", row.From, row.Event, row.To)
		}
	}
}

func TestRunSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	if err := run(filepath.Join(t.TempDir(), "no", "such", "directory")); err == nil {
		t.Error("wrote into a directory that does not exist")
	}
}
