package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// exported is one identifier that another module can name: a constant, variable, function or type of a public package, a method of
// such a type, or a field of one that is a struct.
type exported struct {
	line string // as in docs/api.txt
	name string
	at   place
	of   string // the type, of a method or field
	free bool   // called or read by the standard library: String, a field with a tag

	inside bool // of its type: a method of an interface, an embedded field
}

// place is where an identifier is declared, which is the same from source and from compiled packages.
type place string

func placeOf(set *token.FileSet, o types.Object) place {
	if o.Pkg() == nil {
		return ""
	}
	at := set.Position(o.Pos())
	return place(fmt.Sprintf("%s/%s:%d %s", o.Pkg().Path(), filepath.Base(at.Filename), at.Line, o.Name()))
}

// public reports whether other modules are to import a package of ours.
func (h *house) public(p listed) bool {
	dir := h.name(p.Dir) + "/"
	return product(dir) && p.Name != "main" && !strings.HasPrefix(dir, "internal/") && !strings.HasPrefix(dir, "cmd/")
}

// export adds what a public package exports.
func (h *house) export(pkg *types.Package) {
	_, dir, below := strings.Cut(pkg.Path(), "/tdf/") // of our module
	if !below {
		dir = pkg.Name()
	}

	short := func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		return p.Name()
	}
	add := func(line string, o types.Object, of string, free bool) {
		h.api = append(h.api, exported{dir + ": " + line, o.Name(), placeOf(h.set, o), of, free, isInside(o)})
	}
	for _, name := range pkg.Scope().Names() {
		if !token.IsExported(name) {
			continue
		}
		switch o := pkg.Scope().Lookup(name).(type) {
		case *types.Const:
			add(fmt.Sprintf("const %s %s = %s", name, types.TypeString(o.Type(), short), o.Val()), o, "", false)
		case *types.Var:
			add(fmt.Sprintf("var %s %s", name, types.TypeString(o.Type(), short)), o, "", false)
		case *types.Func:
			add("func "+name+signature(o.Signature(), short), o, "", false)
		case *types.TypeName:
			members(o, short, add)
		}
	}
}

// members adds a type, with its exported fields and methods.
func members(o *types.TypeName, short types.Qualifier, add func(line string, o types.Object, of string, free bool)) {
	of := o.Type().Underlying()
	head := "type " + o.Name()
	kind := types.TypeString(of, short)
	var parts []string
	var inside []types.Object
	switch t := of.(type) {
	case *types.Struct:
		kind = "struct"
		for f := range t.Fields() {
			inside = append(inside, f)
		}
	case *types.Interface:
		kind = "interface"
		for m := range t.ExplicitMethods() {
			inside = append(inside, m)
		}
		for e := range t.EmbeddedTypes() {
			parts = append(parts, "all of "+types.TypeString(e, short))
		}
	}
	if o.IsAlias() {
		add(head+" = "+types.TypeString(types.Unalias(o.Type()), short), o, "", false)
		return
	}
	add(head+parameters(o.Type(), short)+" "+strings.Join(append([]string{kind}, parts...), ", "), o, "", false)
	for _, m := range inside {
		if m.Exported() {
			add(head+" "+kind+", "+m.Name()+text(m.Type(), short), m, o.Name(), isTagged(of, m))
		}
	}
	named, ok := o.Type().(*types.Named)
	if !ok {
		return
	}
	for m := range named.Methods() {
		if m.Exported() {
			receiver := types.TypeString(m.Signature().Recv().Type(), short)
			line := fmt.Sprintf("method (%s) %s%s", receiver, m.Name(), signature(m.Signature(), short))
			add(line, m, o.Name(), slices.Contains(standard, m.Name()))
		}
	}
}

// standard are the methods that packages fmt, errors, encoding and log/slog call.
var standard = []string{
	"As", "Error", "Is", "LogValue", "MarshalJSON", "MarshalText", "String", "UnmarshalJSON", "UnmarshalText", "UnmarshalYAML", "Unwrap",
}

// isTagged reports whether a field is there for encoding/json.
func isTagged(of types.Type, field types.Object) bool {
	s, ok := of.(*types.Struct)
	for i := 0; ok && i < s.NumFields(); i++ {
		if s.Field(i) == field {
			return s.Tag(i) != ""
		}
	}
	return false
}

// isInside reports whether an identifier comes with its type: nobody has to name it.
func isInside(o types.Object) bool {
	switch o := o.(type) {
	case *types.Var:
		return o.Embedded()
	case *types.Func:
		return o.Signature().Recv() != nil && types.IsInterface(o.Signature().Recv().Type())
	}
	return false
}

func text(t types.Type, short types.Qualifier) string {
	if s, ok := t.(*types.Signature); ok {
		return signature(s, short)
	}
	return " " + types.TypeString(t, short)
}

// signature leaves out the names of parameters, which a caller does not write.
func signature(s *types.Signature, short types.Qualifier) string {
	list := func(of *types.Tuple, variadic bool) string {
		all := make([]string, of.Len())
		for i := range all {
			all[i] = types.TypeString(of.At(i).Type(), short)
		}
		if variadic {
			last := len(all) - 1
			all[last] = "..." + strings.TrimPrefix(all[last], "[]")
		}
		return strings.Join(all, ", ")
	}
	out := typeParameters(s.TypeParams(), short) + "(" + list(s.Params(), s.Variadic()) + ")"
	switch results := list(s.Results(), false); {
	case s.Results().Len() > 1:
		return out + " (" + results + ")"
	case results != "":
		return out + " " + results
	default:
		return out
	}
}

func parameters(t types.Type, short types.Qualifier) string {
	if named, ok := t.(*types.Named); ok {
		return typeParameters(named.TypeParams(), short)
	}
	return ""
}

func typeParameters(list *types.TypeParamList, short types.Qualifier) string {
	if list.Len() == 0 {
		return ""
	}
	all := make([]string, 0, list.Len())
	for p := range list.TypeParams() {
		all = append(all, p.Obj().Name()+" "+types.TypeString(p.Constraint(), short))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// write writes docs/api.txt, one line an identifier.
func (h *house) write() error {
	all := make([]string, len(h.api))
	for i, e := range h.api {
		all[i] = e.line + "\n"
	}
	slices.Sort(all)
	return os.WriteFile(filepath.Join(h.root, "docs", "api.txt"), []byte(strings.Join(all, "")), 0o644)
}

// unused finds what nothing outside its package names: no other package, command, example, or test from outside. A type is in use too
// if one of its fields or methods is, or if the declaration of something in use mentions it. The methods of an interface and what a struct
// embeds are in use with it.
func (h *house) unused() error {
	used, err := h.named()
	if err != nil {
		return err
	}
	inUse, words := map[string]bool{}, map[string]bool{} // types, by their packages, and what declarations mention
	lives := func(e exported, from, declaration string) bool {
		switch {
		case used[e.at]:
			return true
		case e.of != "":
			return e.inside && inUse[from+": "+e.of]
		default:
			return strings.HasPrefix(declaration, "type ") && (inUse[from+": "+e.name] || words[e.name])
		}
	}
	idle := slices.Clone(h.api)
	for before := -1; before != len(idle); {
		before = len(idle)
		idle = slices.DeleteFunc(idle, func(e exported) bool {
			from, declaration, _ := strings.Cut(e.line, ": ")
			if !lives(e, from, declaration) {
				return false
			}
			inUse[from+": "+cmp.Or(e.of, e.name)] = true
			all := identifier.FindAllString(declaration, -1)
			own := slices.Index(all, e.name)
			for _, word := range slices.Delete(all, own, own+1) {
				words[word] = true
			}
			return true
		})
	}
	for _, e := range idle {
		if !e.free {
			h.idle = append(h.idle, e.line)
		}
	}
	slices.Sort(h.idle)
	return nil
}

var identifier = regexp.MustCompile(`[A-Za-z0-9_]+`)

// named finds all that is named outside its package.
func (h *house) named() (map[place]bool, error) {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-test", "-deps", "-export",
		"-json=ImportPath,Dir,Export,Standard,GoFiles,DepOnly", "./...")
	cmd.Dir, cmd.Stderr = h.root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var ours []listed
	exports := map[string]string{}
	for all := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := all.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && !strings.HasSuffix(p.ImportPath, ".test") {
			ours = append(ours, p)
		}
	}
	set := token.NewFileSet()
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	used := map[place]bool{}
	for _, p := range ours {
		if err := names(set, from, p, used); err != nil {
			return nil, err
		}
	}
	return used, nil
}

// names adds the names of other packages that a package uses. A name that does not resolve is not ours: a test also sees what
// only tests declare.
func names(set *token.FileSet, from types.Importer, p listed, used map[place]bool) error {
	files := make([]*ast.File, 0, len(p.GoFiles))
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		files = append(files, f)
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: from, Error: func(error) {}}
	_, _ = conf.Check(path, set, files, info)
	objects := slices.Collect(maps.Values(info.Uses))
	objects = slices.DeleteFunc(objects, func(o types.Object) bool { return o.Pkg() == nil || o.Pkg().Path() == path })
	for _, o := range append(objects, converted(info)...) {
		switch generic := o.(type) {
		case *types.Func:
			o = generic.Origin()
		case *types.Var:
			o = generic.Origin()
		}
		used[placeOf(set, o)] = true
	}
	return nil
}

// converted are the fields of the structs that become one of another package, which reads them under its own names.
func converted(info *types.Info) (fields []types.Object) {
	for e := range info.Types {
		call, ok := e.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 || !info.Types[call.Fun].IsType() {
			continue
		}
		to, ok := info.Types[call.Fun].Type.(*types.Named)
		from, alsoOK := info.Types[call.Args[0]].Type.(*types.Named)
		if !ok || !alsoOK || to.Obj().Pkg() == from.Obj().Pkg() {
			continue
		}
		for _, of := range []*types.Named{to, from} {
			s, ok := of.Underlying().(*types.Struct)
			for i := 0; ok && i < s.NumFields(); i++ {
				fields = append(fields, s.Field(i))
			}
		}
	}
	return fields
}
