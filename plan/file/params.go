package file

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// values are the parameters with what they are in one use of the file.
func (f *File) values(given map[string]string, p *problems) map[string]Value {
	known := make([]string, len(f.Params))
	values := map[string]Value{}
	for i, param := range f.Params {
		known[i] = param.Name
		text, is := given[param.Name]
		switch {
		case is && param.Default.List != nil:
			values[param.Name] = Value{List: items(text)}
		case is:
			values[param.Name] = Value{Text: text}
		case param.Required:
			p.add(param.Line, "params."+param.Name, "has no default and was not given; add -p %s=VALUE", param.Name)
		default:
			values[param.Name] = param.Default
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			p.add(0, "", "-p %s=%s: there is no such parameter; %s", name, given[name], meant(name, known))
		}
	}
	return values
}

// items splits a list of the command line at commas; it is never nil.
func items(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, ",")
}

// scope is what may be named between ${ and }.
type scope struct {
	params map[string]Value
	item   string
	inStep bool // a step with foreach
	later  bool // the item is a line that is not known yet, and may not stand here
}

// fill puts values in the place of ${item} and ${params.x}; $${ is a ${ that stays.
func (s *scope) fill(text string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			out.WriteString(text)
			return out.String(), nil
		}
		if kept, escaped := strings.CutSuffix(before, "$"); escaped {
			out.WriteString(kept + "${")
			text = rest
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf("${%s has no }; add it, or write $${ for a ${ that stays", rest)
		}
		value, err := s.lookup(strings.TrimSpace(name))
		if err != nil {
			return "", err
		}
		out.WriteString(before + value)
		text = after
	}
}

func (s *scope) lookup(name string) (string, error) {
	if name == "item" {
		if !s.inStep {
			return "", fmt.Errorf("${item} is known in a step with foreach only; add foreach, or write ${params.NAME}")
		}
		if s.later {
			return "", fmt.Errorf("${item} is a line that is known only when the plan runs: it can stand in input and argv")
		}
		return s.item, nil
	}
	param, ok := strings.CutPrefix(name, "params.")
	if !ok {
		return "", fmt.Errorf("${%s} is unknown; write ${item}, ${params.NAME}, or $${ for a ${ that stays", name)
	}
	v, ok := s.params[param]
	switch {
	case !ok:
		return "", fmt.Errorf("${%s}: there is no parameter %q; %s", name, param, meant(param, slices.Collect(maps.Keys(s.params))))
	case v.List != nil:
		return "", fmt.Errorf("${%s} is a list; write foreach: {param: %s} and ${item}", name, param)
	}
	return v.Text, nil
}
