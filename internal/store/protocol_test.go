package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

// documented reads the first column of the tables of one section of
// docs/PROTOCOL.md, and the row that belongs to each name.
func documented(t *testing.T, section string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("docs/PROTOCOL.md has no section %q", section)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	names := map[string]string{}
	for line := range strings.Lines(part) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			names[strings.Trim(name, " `")] = strings.TrimSpace(line)
		}
	}
	return names
}

// TestProtocolNamesTheKeys: the document and keys.go know the same keys.
func TestProtocolNamesTheKeys(t *testing.T) {
	t.Parallel()
	inDoc := documented(t, "Keys")
	inCode := store.KeyFunctions("ns")
	for name := range inDoc {
		if _, ok := inCode[name]; !ok {
			t.Errorf("docs/PROTOCOL.md has the key %q, keys.go has not", name)
		}
	}
	for name, key := range inCode {
		if _, ok := inDoc[name]; !ok || !pattern(name).MatchString(strings.TrimPrefix(key, "ns:")) {
			t.Errorf("key %s is not in docs/PROTOCOL.md under %q", key, name)
		}
	}
	listed, err := os.ReadFile("export_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range keyMethods(t) {
		if !strings.Contains(string(listed), "k."+method+"(") {
			t.Errorf("KeyFunctions in export_test.go lacks %s of keys.go", method)
		}
	}
}

// keyMethods are the functions of keys.go that make one key.
func keyMethods(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "conn/keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && f.Recv != nil && f.Name.Name != "States" && f.Name.Name != "All" {
			names = append(names, f.Name.Name)
		}
	}
	if len(names) < 10 {
		t.Fatalf("only %v found in keys.go", names)
	}
	return names
}

// pattern turns a documented name into an expression: <id> is any number,
// <state> a state, any other <word> any text.
func pattern(name string) *regexp.Regexp {
	var states []string
	for _, st := range statemachine.States() {
		states = append(states, string(st))
	}
	text := regexp.QuoteMeta(name)
	text = strings.ReplaceAll(text, "<id>", `\d+`)
	text = strings.ReplaceAll(text, "<state>", "("+strings.Join(states, "|")+")")
	text = regexp.MustCompile(`<\w+>`).ReplaceAllString(text, ".+")
	return regexp.MustCompile("^" + text + "$")
}

// TestProtocolHoldsInRedis: each key and each field that our programs make is
// documented, with its type and whether it expires; and each key that is
// documented is made.
func TestProtocolHoldsInRedis(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	liveFully(t, sp)
	planFully(t, sp)
	retireFully(t, sp)
	recordFully(t, sp)
	keys, fields := documented(t, "Keys"), documented(t, "Fields of a task")
	made := map[string]bool{"changed": true, "call:<name>": true, "rules": true} // channels
	for key, content := range dump(t, sp) {
		name := match(keys, key)
		if name == "" {
			t.Errorf("key %s is not documented", key)
			continue
		}
		made[name] = true
		cells := strings.Split(keys[name], "|")
		kind, _, _ := strings.Cut(content, " ")
		if want := strings.ReplaceAll(strings.TrimSpace(cells[2]), "sorted set", "zset"); want != kind {
			t.Errorf("key %s is a %s, documented as %s", key, kind, want)
		}
		if expires := strings.HasSuffix(content, " expires"); expires != strings.HasPrefix(strings.TrimSpace(cells[5]), "TTL ") {
			t.Errorf("key %s expires: %v, documented: %s", key, expires, cells[5])
		}
		switch name {
		case "task:<id>":
			checkFields(t, fields, sp.Raw.HGetAll(t.Context(), sp.Key(key)).Val())
		case "worker:<name>":
			checkFields(t, documented(t, "Fields of a worker"), sp.Raw.HGetAll(t.Context(), sp.Key(key)).Val())
		case "queue:<queue>":
			checkFields(t, documented(t, "Fields of a queue"), sp.Raw.HGetAll(t.Context(), sp.Key(key)).Val())
		case "plan:<id>":
			checkFields(t, documented(t, "Fields of a plan"), sp.Raw.HGetAll(t.Context(), sp.Key(key)).Val())
		case "node:<node>":
			checkFields(t, documented(t, "Fields of a node"), sp.Raw.HGetAll(t.Context(), sp.Key(key)).Val())
		case "meta":
			made := sp.Raw.HGetAll(t.Context(), sp.Key(key)).Val()
			delete(made, "test_clock")
			checkFields(t, documented(t, "Fields of meta"), made)
		}
	}
	for name := range keys {
		if !made[name] {
			t.Errorf("key %q is documented and never made", name)
		}
	}
}

func match(documented map[string]string, name string) string {
	best := ""
	for doc := range documented {
		if pattern(doc).MatchString(name) && len(doc) > len(best) {
			best = doc
		}
	}
	return best
}

func checkFields(t *testing.T, documented, fields map[string]string) {
	t.Helper()
	for field := range fields {
		name := field
		if number, rest, ok := strings.Cut(field, ":"); ok && field != "0:open" && regexp.MustCompile(`^\d+$`).MatchString(number) {
			name = "r:" + rest
		}
		if match(documented, name) == "" {
			t.Errorf("field %s is not documented", field)
		}
	}
}
