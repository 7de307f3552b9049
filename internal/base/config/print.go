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
