// Package config loads the INI files of TDF's programs: server.cfg, worker.cfg
// and manager.cfg.
//
// The format is that of the original Python implementation, whose files load
// unchanged: sections [redis], [tdf], [server], [worker], [manager] and
// [task_defaults], times as seconds ("1.3"), booleans as True or true, and
// "password=None" for no password. New are further keys, Go durations ("5m"),
// sizes ("1MiB") and environment variables.
//
// A value comes from the first of: a command-line flag, the environment
// variable TDF_SECTION_KEY, the file, the default. Everything known about a
// key (default, type, limits, text for people) stands in one line of the
// schema; defaults, environment, suggestions, Print and the reference in
// docs/CONFIGURATION.md all come from that table.
//
// Every problem is an *Error that names the place, the value and the remedy.
// Values of secret or unknown keys never appear in errors or in Print.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
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

// WithValues adds values that a program gives in its code. They win over everything
// else. An error calls them by their own names.
func WithValues(values ...Value) Option {
	return func(l *loader) { l.values = append(l.values, values...) }
}

// WithoutRedis is for a worker that reaches its site over HTTP: the sections [redis] and [tdf] may be missing, and what [redis] sets
// counts for nothing.
func WithoutRedis() Option {
	return func(l *loader) { l.withoutRedis = true }
}

// Value is the text of a key that a program gives, and what the program calls it.
type Value struct{ Section, Key, Text, Name string }

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
	for _, v := range l.values {
		l.put(v.Section, v.Key, setting{text: v.Text, level: fromProgram, place: v.Name})
	}
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

// Defaults is the configuration of a file that sets nothing. It has no namespace.
func Defaults() *File {
	l := newLoader("", "")
	l.apply()
	return l.file
}

// Offer reads texts of the keys of [worker] that say which tasks a worker may run; one that is missing or empty has its default. The
// error is an *Error.
func Offer(texts map[string]string) (Worker, error) {
	var w Worker
	for _, k := range offerKeys(&w) {
		text := cmp.Or(texts[k.name], k.fallback)
		if err := k.parse(text); err != nil {
			problem, remedy := explain(err)
			return w, &Error{Section: "worker", Key: k.name, Value: text, Problem: problem, Remedy: remedy, Err: ErrInvalid}
		}
	}
	return w, nil
}

// loader carries what the steps of one Load share.
type loader struct {
	file     *File
	schema   schema
	environ  []string
	flags    []string
	values   []Value
	sections map[string]bool // sections the file has
	problems []*Error

	withoutRedis bool
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
	fromProgram
)

// put stores a setting unless a stronger source has given the key.
func (l *loader) put(section, key string, s setting) {
	name := section + "." + key
	if old, ok := l.file.settings[name]; ok && old.level > s.level || l.withoutRedis && section == "redis" {
		return
	}
	l.file.settings[name] = s
}

func (l *loader) report(e *Error) { l.problems = append(l.problems, e) }

// apply parses every setting, or its default.
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
		if !l.withoutRedis { // no other key is required
			l.reportMissing(sec, k, s)
		}
		return
	}
	if err := k.parse(s.text); err != nil {
		l.report(l.fault(sec.name, k, s, err))
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

// fault says where the value stands in which a check has found err.
func (l *loader) fault(section string, k key, s setting, err error) *Error {
	shown := mask(s.text)
	if k.secret {
		shown = ""
	}
	problem, remedy := explain(err)
	return &Error{
		File: s.place, Line: s.line, Section: section, Key: k.name, Value: shown,
		Problem: problem, Remedy: remedy, Err: ErrInvalid,
	}
}

// requireSections reports the sections that every program needs and that
// neither the file nor anything else mentions.
func (l *loader) requireSections() {
	for _, sec := range l.schema {
		if !sec.required || l.withoutRedis || l.present(sec.name) || l.unreadable() {
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
	return slices.ContainsFunc(l.problems, func(p *Error) bool { return errors.Is(p, ErrUnreadable) })
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

// File is one configuration as merged from flags, environment, file and
// defaults, and validated. It is made by Load.
type File struct {
	// Path is the file read; empty when everything came from the environment.
	Path string
	// Kind is the program the configuration was loaded for.
	Kind Kind

	Redis        Redis
	TDF          TDF
	HTTP         HTTP
	Server       Server
	Worker       Worker
	Manager      Manager
	TaskDefaults TaskDefaults
	Pin          string // of [manager], for the command line alone

	settings map[string]setting // by "section.key"; says where each value came from
	exposed  []string           // files with secrets that every user can read
}

// Warnings returns what is legal but unwise, one sentence each, for the log:
// for example a file with a password that other users can read.
func (f *File) Warnings() []string {
	warnings := make([]string, 0, len(f.exposed))
	for _, path := range f.exposed {
		warnings = append(warnings, path+" holds a secret and can be read by every user; chmod 600 it")
	}
	return warnings
}

// Kind is the program a configuration is loaded for.
type Kind string

// The programs. Each accepts the sections of the others too, so that one file
// can serve all three. A program that uses the packages loads as a manager does.
const (
	ForServer  Kind = "tdf-server"
	ForWorker  Kind = "tdf-worker"
	ForManager Kind = "tdf-manager"
)
