package config

import (
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
const referenceHead = `# Configuration

<!-- Generated from the schema in internal/base/config by its test with -update; do not edit. -->

All programs read INI files. One file may serve all of them: each reads its own
sections and checks the others.

- A value comes from the first of: the flag ` + "`--set section.key=value`" + `, the environment
  variable ` + "`TDF_SECTION_KEY`" + ` (` + "`TDF_REDIS_HOST`" + `), the file, the default. An empty variable counts as not set.
- An unknown section or key is an error that names the nearest known one.
- ` + "`#` or `;`" + ` starts a comment only at the start of a line; inside a value both are
  ordinary characters.
- Seconds are written as numbers (` + "`1.3`" + `) or durations (` + "`1.3s`, `5m`" + `), sizes as bytes
  (` + "`65536`" + `) or with a unit (` + "`64KiB`, `1MiB`" + `; ` + "`kB`, `MB`" + ` count in thousands).
- Relative paths start at the working directory of the program.
- ` + "`--check`" + ` validates a configuration, ` + "`--print-config`" + ` shows the merged result and where
  each value came from; secrets are shown as ` + "`****`" + `.
`

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
