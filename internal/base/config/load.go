package config

import (
	"errors"
	"fmt"
	"os"
)

// Option changes what Load looks at besides the file.
type Option func(*loader)

// WithEnviron replaces the process environment, as "NAME=value" texts; nil
// means an empty one.
func WithEnviron(environ []string) Option {
	return func(l *loader) { l.environ = environ }
}

// WithSettings adds values given on the command line, each
// "section.key=value"; they win over everything else. Secrets are refused
// there, because other users of the machine can read a command line.
func WithSettings(settings ...string) Option {
	return func(l *loader) { l.flags = append(l.flags, settings...) }
}

// Load reads and validates the configuration of the program need. With an empty
// path everything comes from the environment and the options.
//
// The error is an *Error or several joined ones, which match ErrUnreadable,
// ErrUnknown, ErrMissing or ErrInvalid.
func Load(path string, need Kind, opts ...Option) (*File, error) {
	l := newLoader(path, need)
	for _, opt := range opts {
		opt(l)
	}
	if path != "" {
		l.readFile(path)
	}
	l.readEnviron()
	l.readFlags()
	l.requireSections()
	l.apply()
	if len(l.problems) == 0 {
		l.readSecrets()
		l.check()
	}
	if len(l.problems) > 0 {
		return nil, join(l.problems)
	}
	return l.file, nil
}

// loader carries what the steps of one Load share.
type loader struct {
	file     *File
	schema   schema
	environ  []string
	flags    []string
	sections map[string]bool // sections the file has
	problems []*Error
}

func newLoader(path string, need Kind) *loader {
	file := &File{Path: path, Kind: need, settings: map[string]setting{}}
	return &loader{
		file:     file,
		schema:   schemaOf(file),
		environ:  os.Environ(),
		sections: map[string]bool{},
	}
}

// setting is the text of one key and where it came from.
type setting struct {
	text  string
	level level
	place string // path of the file, name of the variable or flag
	line  int
}

// level orders the sources of a value; the higher one wins.
type level int

const (
	fromDefault level = iota
	fromFile
	fromEnvironment
	fromFlag
)

// put stores a setting unless a stronger source has given the key.
func (l *loader) put(section, key string, s setting) {
	name := section + "." + key
	if old, ok := l.file.settings[name]; ok && old.level > s.level {
		return
	}
	l.file.settings[name] = s
}

func (l *loader) report(e *Error) { l.problems = append(l.problems, e) }

// apply parses every setting, or the default where there is none.
func (l *loader) apply() {
	for _, sec := range l.schema {
		for _, k := range sec.keys {
			l.applyKey(sec, k)
		}
	}
}

func (l *loader) applyKey(sec section, k key) {
	name := sec.name + "." + k.name
	s, given := l.file.settings[name]
	if !given {
		s.text = k.fallback
	}
	if k.required && s.text == "" {
		l.reportMissing(sec, k, s)
		return
	}
	if f := k.parse(s.text); f != nil {
		l.report(l.fault(sec.name, k, s, f))
	}
	if k.secret && none(s.text) != "" {
		s.text = hidden // nothing but the parsed value may hold it from here on
	}
	l.file.settings[name] = s
}

func (l *loader) reportMissing(sec section, k key, s setting) {
	if !l.present(sec.name) {
		return // requireSections has said so
	}
	file := s.place
	if file == "" {
		file = l.file.Path
	}
	l.report(&Error{
		File: file, Line: s.line, Section: sec.name, Key: k.name, Err: ErrMissing,
		Problem: "this key is required and has no default",
		Remedy:  "write " + k.name + "=" + k.example + " in section [" + sec.name + "], or set " + envName(sec.name, k.name),
	})
}

// fault turns what a parser found into an Error that says where.
func (l *loader) fault(section string, k key, s setting, f *fault) *Error {
	shown := mask(s.text)
	if k.secret {
		shown = ""
	}
	return &Error{
		File: s.place, Line: s.line, Section: section, Key: k.name, Value: shown,
		Problem: f.problem, Remedy: f.remedy, Err: ErrInvalid,
	}
}

// requireSections reports the sections that every program needs and that
// neither the file nor anything else mentions.
func (l *loader) requireSections() {
	for _, sec := range l.schema {
		if !sec.required || l.present(sec.name) || l.unreadable() {
			continue
		}
		l.report(&Error{
			File: l.file.Path, Section: sec.name, Err: ErrMissing,
			Problem: "this section is missing",
			Remedy:  "add " + sec.example + ", or set " + envName(sec.name, sec.keys[0].name),
		})
	}
}

// present reports whether any source mentions the section.
func (l *loader) present(section string) bool {
	if l.sections[section] {
		return true
	}
	for _, k := range l.schema.section(section).keys {
		if l.file.settings[section+"."+k.name].level > fromDefault {
			return true
		}
	}
	return false
}

func (l *loader) unreadable() bool {
	for _, p := range l.problems {
		if errors.Is(p, ErrUnreadable) {
			return true
		}
	}
	return false
}

// maxProblems is how many problems one error lists; a file of another kind
// would have one in every line.
const maxProblems = 20

func join(problems []*Error) error {
	if len(problems) == 1 {
		return problems[0]
	}
	var all []error
	for i, p := range problems {
		if i == maxProblems {
			all = append(all, fmt.Errorf("and %d more problems", len(problems)-maxProblems))
			break
		}
		all = append(all, p)
	}
	return errors.Join(all...)
}
