package file

import (
	"encoding/json"
	"strings"
)

// Value is a text, a list of texts, or pairs of them.
type Value struct {
	Text string
	// List is not nil for a list, Pairs for pairs.
	List  []string
	Pairs map[string]string
}

// value reads a value of a field or parameter.
func (n *node) value(field string, p *problems) Value {
	switch n.kind {
	case text:
		return Value{Text: n.text}
	case list:
		return Value{List: n.texts(field, p)}
	case mapping:
		v := Value{Pairs: map[string]string{}}
		for _, item := range n.pairs {
			v.Pairs[item.key] = item.value.single(field+"."+item.key, p)
		}
		return v
	default:
		p.add(n.line, field, "has no value; write one, or leave the line out")
		return Value{}
	}
}

// single reads a text.
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
func (v Value) each(change func(string) (string, error)) (Value, error) {
	var err error
	with := func(s string) string {
		if err == nil {
			s, err = change(s)
		}
		return s
	}
	out := Value{Text: with(v.Text)}
	if v.List != nil {
		out.List = make([]string, len(v.List))
		for i, s := range v.List {
			out.List[i] = with(s)
		}
	}
	if v.Pairs != nil {
		out.Pairs = make(map[string]string, len(v.Pairs))
		for name, s := range v.Pairs {
			out.Pairs[name] = with(s)
		}
	}
	return out, err
}

// JSON is the field as submit --from-json reads it.
func (f *Field) JSON() json.RawMessage {
	v := any(f.Value.Text)
	switch {
	case f.Value.Pairs != nil:
		v = f.Value.Pairs
	case f.Value.List != nil && (f.Name == argvField || len(f.Value.List) == 0):
		v = f.Value.List
	case f.Value.List != nil:
		v = strings.Join(f.Value.List, ",")
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts can be marshalled
	}
	return raw
}
