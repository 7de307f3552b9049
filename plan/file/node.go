package file

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/tdf-go/tdf/internal/base/clean"
)

// kind is what a value of the file is.
type kind int

const (
	null kind = iota
	text
	list
	mapping
)

// node is a value of the file with its line. A number is the text that was written: 007 stays 007.
type node struct {
	kind  kind
	line  int
	text  string
	list  []*node
	pairs []pair
}

type pair struct {
	key   string
	line  int
	value *node
}

// String says what it is, for errors.
func (k kind) String() string {
	return [...]string{"nothing", "a text", "a list", "a mapping"}[k]
}

// maxDepth is how many lists and mappings may lie in each other, but for those that only indentation shows. The parser needs the square
// of that in memory.
const maxDepth = 100

// tooDeep is the line where there are more, 0 if none.
func tooDeep(tokens token.Tokens) int {
	flow, entries, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			entries, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType:
			entries++
		default:
		}
		if flow+entries > maxDepth {
			return line
		}
	}
	return 0
}

// read parses the YAML. It returns nil if there is an error.
func read(data []byte, p *problems) *node {
	tokens := lexer.Tokenize(string(data))
	if line := tooDeep(tokens); line > 0 {
		p.add(line, "", "more than %d lists and mappings lie in each other; write fewer", maxDepth)
		return nil
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		line := 0
		if at, ok := errors.AsType[yaml.Error](err); ok {
			line, err = at.GetToken().Position.Line, errors.New(at.GetMessage())
		}
		p.add(line, "", "not YAML: %w", err)
		return nil
	}
	var body *node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			p.add(doc.Body.GetToken().Position.Line, "", "a second document begins here; write one plan in a file")
		default:
			body = convert(doc.Body, p)
		}
	}
	if body == nil || body.kind != mapping {
		p.add(1, "", "this is not a plan: write steps, each with a program")
		return nil
	}
	return body
}

// convert makes a node of what the library has read.
func convert(from ast.Node, p *problems) *node {
	n := &node{line: from.GetToken().Position.Line}
	switch v := from.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		n.kind, n.text = text, v.Value
	case *ast.LiteralNode:
		n.kind, n.text = text, v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = text, from.GetToken().Value
	case *ast.SequenceNode:
		n.kind = list
		for _, item := range v.Values {
			n.list = append(n.list, convert(item, p))
		}
	case *ast.MappingNode:
		n.kind = mapping
		for _, item := range v.Values {
			n.addPair(item, p)
		}
	case *ast.MappingValueNode:
		n.kind = mapping
		n.addPair(v, p)
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		p.add(n.line, "", "anchors and aliases are not read; put what steps share under defaults or params")
	case *ast.TagNode:
		p.add(n.line, "", "tags such as %s are not read; leave it out", v.Start.Value)
	default:
		p.add(n.line, "", "%s is not read here", from.Type())
	}
	return n
}

func (n *node) addPair(from *ast.MappingValueNode, p *problems) {
	line := from.Key.GetToken().Position.Line
	switch from.Key.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		n.pairs = append(n.pairs, pair{key: from.Key.GetToken().Value, line: line, value: convert(from.Value, p)})
	case *ast.MergeKeyNode:
		p.add(line, "", "<< is not read; put what steps share under defaults or params")
	default:
		p.add(line, "", "a name must be a text")
	}
}

// value is a text, a list of texts, or pairs of them.
type value struct {
	text string
	// list is not nil for a list, pairs for pairs.
	list  []string
	pairs map[string]string
}

// size is how many bytes it has.
func (v value) size() int {
	n := len(v.text)
	for _, item := range v.list {
		n += len(item)
	}
	for name, text := range v.pairs {
		n += len(name) + len(text)
	}
	return n
}

func (n *node) value(field string, p *problems) value {
	switch n.kind {
	case text:
		return value{text: n.text}
	case list:
		return value{list: n.texts(field, p)}
	case mapping:
		v := value{pairs: map[string]string{}}
		for _, item := range n.pairs {
			v.pairs[item.key] = item.value.single(field+"."+item.key, p)
		}
		return v
	default:
		p.add(n.line, field, "has no value; write one, or leave the line out")
		return value{}
	}
}

func (n *node) single(field string, p *problems) string {
	if n.kind != text {
		p.add(n.line, field, "is %s; write one text", n.kind)
	}
	return n.text
}

// texts reads a list of texts; it is never nil.
func (n *node) texts(field string, p *problems) []string {
	texts := make([]string, 0, len(n.list))
	for _, item := range n.list {
		if item.kind != text {
			p.add(item.line, field, "has %s in its list; write texts or numbers only", item.kind)
			continue
		}
		texts = append(texts, item.text)
	}
	return texts
}

// each makes a value with all its texts changed.
func (v value) each(change func(string) (string, error)) (value, error) {
	var err error
	with := func(s string) string {
		if err == nil {
			s, err = change(s)
		}
		return s
	}
	out := value{text: with(v.text)}
	if v.list != nil {
		out.list = make([]string, len(v.list))
		for i, s := range v.list {
			out.list[i] = with(s)
		}
	}
	if v.pairs != nil {
		out.pairs = make(map[string]string, len(v.pairs))
		for name, s := range v.pairs {
			out.pairs[name] = with(s)
		}
	}
	return out, err
}

// shown is the field as people may see it.
func (f *taskField) shown() any {
	switch f.name {
	case sourceField, "return_to":
		return clean.Source(f.value.text)
	case variablesField:
		return json.RawMessage(clean.Values(string(f.json())))
	}
	return f.json()
}

// json is the field as submit --from-json reads it.
func (f *taskField) json() json.RawMessage {
	v := any(f.value.text)
	switch {
	case f.value.pairs != nil:
		v = f.value.pairs
	case f.value.list != nil && (f.name == argvField || f.name == returnField || len(f.value.list) == 0):
		v = f.value.list
	case f.value.list != nil:
		v = strings.Join(f.value.list, ",")
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts can be marshalled
	}
	return raw
}
