package config

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
)

// Print writes the merged configuration as an INI file that loads again, with
// a comment above each value that says where it came from. Secrets are written
// as ****.
func (f *File) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# configuration of %s\n", f.Kind)
	for _, sec := range schemaOf(&File{}) {
		fmt.Fprintf(&b, "\n[%s]\n", sec.name)
		for _, k := range sec.keys {
			s := f.settings[sec.name+"."+k.name]
			fmt.Fprintf(&b, "# %s\n%s=%s\n", s.origin(), k.name, mask(s.text))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// origin says where a value came from.
func (s setting) origin() string {
	switch {
	case s.level == fromDefault:
		return "default"
	case s.line > 0:
		return fmt.Sprintf("%s line %d", printed(s.place), s.line)
	default:
		return s.place
	}
}

// referenceHead starts docs/CONFIGURATION.md.
//
//go:embed reference.md
var referenceHead string

// WriteReference writes docs/CONFIGURATION.md: every section and key with type,
// default and meaning.
func WriteReference(w io.Writer) error {
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, sec := range schemaOf(&File{}) {
		fmt.Fprintf(&b, "\n## [%s]\n\n%s\n", sec.name, sec.doc)
		for _, k := range sec.keys {
			fmt.Fprintf(&b, "\n### `%s`\n\n%s\n\n*%s; default: %s*\n", k.name, k.doc, k.typeText(), k.defaultText())
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (k key) typeText() string {
	if k.limits == "" {
		return k.kind
	}
	return k.kind + ", " + k.limits
}

func (k key) defaultText() string {
	switch {
	case k.required:
		return "none; required"
	case k.fallback == "":
		return "empty"
	default:
		return "`" + k.fallback + "`"
	}
}

// Given reports whether the section is there: whether a file, the environment or
// the command line sets any of its keys.
func (f *File) Given(section string) bool {
	for name, s := range f.settings {
		if strings.HasPrefix(name, section+".") && s.level >= fromFile {
			return true
		}
	}
	return false
}

// Exposed returns the files with secrets, of those that the program reads, that
// every user of this host can read.
func (f *File) Exposed() []string { return f.exposed }

// Keys returns every key that a configuration can have, as section.key, in the
// order of the reference.
func Keys() []string {
	var all []string
	for _, sec := range schemaOf(&File{}) {
		for _, k := range sec.keys {
			all = append(all, sec.name+"."+k.name)
		}
	}
	return all
}
