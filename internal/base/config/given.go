package config

import "strings"

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
func (f *File) Exposed() (paths []string) {
	for _, w := range f.warnings {
		if path, found := strings.CutSuffix(w, exposedWarning); found {
			paths = append(paths, path)
		}
	}
	return paths
}

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
