package acceptance

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root     = "../.."
	document = root + "/docs/ACCEPTANCE.md"
)

var (
	rowPattern  = regexp.MustCompile(`(?m)^\| ((?:(?:[ABDFPT]|R[A-J])\d+ )+)\|.*\|(.*)\|$`)
	testPattern = regexp.MustCompile("`([a-z][a-zA-Z0-9_/-]*)\\.((?:Test|Fuzz|Example)\\w*)(?:/([^`]+))?`")
)

// later are the cases of which nothing needs to be shown yet; scenarios how many
// there are of faults and abuse, by letter.
var (
	later     = []string{}
	scenarios = map[string]int{"A": 16, "B": 15, "C": 11, "D": 7, "E": 11, "F": 9, "G": 10, "H": 10, "I": 12, "J": 6}
)

// unshown begins a row of a scenario that no test shows; the reason follows.
const unshown = " not shown: "

// The document names every case once, each with a test unless it belongs to a
// later step, and every test that it names exists.
func TestDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems(string(text), declared(t)) {
		t.Error(problem)
	}
}

// The check of the document would see a case or a test that is missing.
func TestDocumentCheckBites(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	have := declared(t)
	for name, c := range map[string]struct{ old, broken, want string }{
		"case missing":     {"| A07 |", "| - |", "A07 is not there"},
		"case twice":       {"| A07 |", "| A08 |", "A08 is there 2 times"},
		"queue missing":    {"| D14 |", "| - |", "D14 is not there"},
		"no test":          {"`manager.TestRandomStartOffset` |\n", "nothing |\n", "A03 names no test"},
		"scenario missing": {"| RE6 |", "| - |", "RE6 is not there"},
		"no reason":        {" not shown: there are no pages yet |", " not shown |", "RH4 names no test"},
		"test missing":     {"`test/chaos.TestLongKilledAtRandom`", "`test/chaos.TestNothing`", "there is no test test/chaos.TestNothing"},
		"subtest missing":  {"TestRedis/stale_report", "TestRedis/stale_reprot", "stale_reprot"},
		"file missing":     {"a24-report", "a99-report", "a99-report"},
		"wrong package":    {"`worker.TestClock`", "`server.TestClock`", "server.TestClock"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := strings.ReplaceAll(string(text), c.old, c.broken)
			if found := strings.Join(problems(broken, have), "\n"); broken == string(text) || !strings.Contains(found, c.want) {
				t.Errorf("%q is not found:\n%s", c.want, found)
			}
		})
	}
}

// tests are the declared tests by directory, and the texts that stand in each
// directory's tests, among which the names of subtests are.
type tests struct {
	functions map[string]bool
	texts     map[string]map[string]bool
}

// problems says what is wrong with the document.
func problems(text string, have *tests) []string {
	var found []string
	seen := map[string]int{}
	for _, row := range rowPattern.FindAllStringSubmatch(text, -1) {
		excused := row[1][0] == 'R' && len(row[2]) > len(unshown)+10 && strings.HasPrefix(row[2], unshown)
		for name := range strings.FieldsSeq(row[1]) {
			seen[name]++
			if !testPattern.MatchString(row[2]) && !slices.Contains(later, name) && !excused {
				found = append(found, name+" names no test")
			}
			if slices.Contains(later, name) != strings.HasPrefix(strings.TrimSpace(row[2]), "next") {
				found = append(found, name+": what belongs to a later step begins with next, and nothing else does")
			}
		}
	}
	for _, name := range cases() {
		switch n := seen[name]; {
		case n == 0:
			found = append(found, name+" is not there")
		case n > 1:
			found = append(found, fmt.Sprintf("%s is there %d times", name, n))
		}
	}
	for _, ref := range testPattern.FindAllStringSubmatch(text, -1) {
		if problem := have.lacks(ref[1], ref[2], ref[3]); problem != "" {
			found = append(found, problem)
		}
	}
	return found
}

// cases are the numbers of all cases, defects and scenarios.
func cases() []string {
	var names []string
	for letter, n := range scenarios {
		for i := range n {
			names = append(names, fmt.Sprintf("R%s%d", letter, i+1))
		}
	}
	for letter, kind := range map[string]struct {
		format string
		last   int
	}{"A": {"%s%02d", 53}, "B": {"%s%d", 28}, "D": {"%s%02d", 21}, "F": {"%s%02d", 18}, "P": {"%s%02d", 18}, "T": {"%s%d", 20}} {
		for i := range kind.last {
			names = append(names, fmt.Sprintf(kind.format, letter, i+1))
		}
	}
	return names
}

func (h *tests) lacks(dir, function, subtest string) string {
	name := dir + "." + function
	if !h.functions[name] {
		return "there is no test " + name
	}
	for part := range strings.SplitSeq(subtest, "/") {
		_, err := os.Stat(filepath.Join(root, dir, "testdata", part))
		if part != "" && err != nil && !h.texts[dir][part] {
			return "test " + name + " has no subtest " + part
		}
	}
	return ""
}

// declared parses all tests of the tree, and the packages that tests are made of.
func declared(t *testing.T) *tests {
	t.Helper()
	have := &tests{functions: map[string]bool{}, texts: map[string]map[string]bool{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		dir, file := filepath.Split(path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(file, ".go"), !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(dir, "test/"):
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Clean(dir))
		if err != nil {
			return err
		}
		return have.parse(filepath.ToSlash(rel), path)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(have.functions) < 100 {
		t.Fatalf("only %d tests found: %v", len(have.functions), slices.Collect(maps.Keys(have.functions)))
	}
	return have
}

func (h *tests) parse(dir, path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if h.texts[dir] == nil {
		h.texts[dir] = map[string]bool{}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && strings.HasSuffix(path, "_test.go") {
				h.functions[dir+"."+n.Name.Name] = true
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				h.texts[dir][strings.ReplaceAll(text, " ", "_")] = true
			}
		}
		return true
	})
	return nil
}
