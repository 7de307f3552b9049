package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/ini.v1"

	"github.com/tdf-go/tdf/task"
)

// maxFile is the largest configuration file, in bytes; a larger one is some
// other file given by mistake.
const maxFile = 1 << 20

// readFile adds the settings of an INI file.
func (l *loader) readFile(path string) {
	data, err := readLimited(path, maxFile)
	if err != nil {
		l.report(&Error{
			File: path, Problem: "cannot be read: " + cause(err), Err: errors.Join(ErrUnreadable, err),
			Remedy: "check the path and the permissions",
		})
		return
	}
	src := scan(path, data)
	for _, p := range src.problems {
		l.report(p)
	}
	if len(src.problems) == 0 {
		l.parse(path, src)
	}
}

// parse reads what scan has found well-formed.
func (l *loader) parse(path string, src *scanner) {
	file, err := ini.LoadSources(ini.LoadOptions{
		IgnoreContinuation:      true, // a value may end in a backslash
		IgnoreInlineComment:     true, // a password may contain # and ;
		PreserveSurroundedQuote: true, // as Python does
	}, src.out.Bytes())
	if err != nil {
		// The parser's error is not shown: it quotes lines, which may hold secrets.
		l.report(&Error{
			File: path, Problem: "is not an INI file", Err: ErrUnreadable,
			Remedy: "write lines of the form key=value below lines of the form [section]",
		})
		return
	}
	for _, sec := range file.Sections() {
		if sec.Name() == ini.DefaultSection && len(sec.Keys()) == 0 {
			continue // the parser's own, always there
		}
		l.takeSection(path, src, sec)
	}
}

func (l *loader) takeSection(path string, src *scanner, sec *ini.Section) {
	known := l.schema.section(sec.Name())
	if known.name == "" {
		e := l.schema.unknownSection(sec.Name())
		e.File, e.Line = path, src.lines[sec.Name()+"]"]
		l.report(e)
		return
	}
	l.sections[known.name] = true
	for _, k := range sec.Keys() {
		line := src.lines[known.name+"]"+k.Name()]
		if _, ok := known.key(k.Name()); !ok {
			e := l.schema.unknownKey(k.Name(), known)
			e.File, e.Line = path, line
			l.report(e)
			continue
		}
		l.put(known.name, k.Name(), setting{text: k.Value(), level: fromFile, place: path, line: line})
	}
}

// readLimited reads a small file; a larger one is an error.
func readLimited(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("larger than %d bytes", most)
	}
	return data, nil
}

// cause is the reason without the path, which the message names already.
func cause(err error) string {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}

// scanner checks the form of each line before the INI parser sees it. The
// parser knows no line numbers, merges what is written twice without a word,
// and takes values that start with a quote character apart.
type scanner struct {
	path     string
	section  string         // that of the line
	out      bytes.Buffer   // what the parser sees: values that it would change are protected
	lines    map[string]int // where sections ("name]") and keys ("name]key") stand
	problems []*Error
}

// scan checks every line.
func scan(path string, data []byte) *scanner {
	s := &scanner{path: path, lines: map[string]int{}}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		s.refuse(0, "is not a text file in UTF-8", "save it as UTF-8")
		return s
	}
	for i, line := range strings.Split(string(data), "\n") {
		s.line(i+1, strings.TrimSpace(line))
	}
	return s
}

func (s *scanner) refuse(line int, problem, remedy string) {
	s.problems = append(s.problems, &Error{File: s.path, Line: line, Problem: problem, Remedy: remedy, Err: ErrUnreadable})
}

func (s *scanner) line(n int, line string) {
	switch {
	case line == "" || line[0] == '#' || line[0] == ';':
	case line[0] == '[':
		s.header(n, line)
	default:
		s.pair(n, line)
	}
}

// header takes a line [section], perhaps with a comment behind it.
func (s *scanner) header(n int, line string) {
	name, rest, closed := strings.Cut(line[1:], "]")
	rest = strings.TrimSpace(rest)
	name = strings.TrimSpace(name)
	if !closed || name == "" || (rest != "" && rest[0] != '#' && rest[0] != ';') {
		s.refuse(n, "this line starts like a section header, but is not one", "write [name] on a line of its own")
		return
	}
	s.section = name
	s.note(n, name+"]", "section ["+printed(name)+"]")
	s.out.WriteString("[" + name + "]\n")
}

// pair takes a line key=value or, as Python does, key: value.
func (s *scanner) pair(n int, line string) {
	i := strings.IndexAny(line, "=:")
	if i < 0 {
		s.refuse(n, "this line is neither a section nor key=value", "write key=value, or # before a comment")
		return
	}
	key, value := strings.TrimSpace(line[:i]), strings.TrimSpace(line[i+1:])
	switch {
	case key == "" || key == "-" || strings.ContainsAny(key, "\"`"):
		s.refuse(n, "this line has no usable key before the =", "write key=value, without quotes")
	case s.section == "":
		s.refuse(n, "key "+printed(key)+" stands before the first section", "move it below a line such as [redis]")
	default:
		s.note(n, s.section+"]"+key, "key "+printed(key)+" of section ["+printed(s.section)+"]")
		s.out.WriteString(key + "=" + protect(value) + "\n")
	}
}

// note remembers where something stands and refuses it a second time.
func (s *scanner) note(n int, what, text string) {
	if first, twice := s.lines[what]; twice {
		s.refuse(n, text+" is written twice", "remove this one or the one in line "+strconv.Itoa(first))
		return
	}
	s.lines[what] = n
}

// protect wraps a value that starts with one of the parser's own quotes; the
// parser removes exactly the wrapping.
func protect(value string) string {
	if strings.HasPrefix(value, "`") || strings.HasPrefix(value, `"""`) {
		return `"""` + value + `"""`
	}
	return value
}

// envPrefix starts every environment variable read here.
const envPrefix = "TDF_"

// envName returns the variable of a key: TDF_SECTION_KEY.
func envName(section, key string) string {
	return envPrefix + strings.ToUpper(section+"_"+key)
}

// readEnviron adds the settings of the environment. An empty variable counts as
// not set, because that is what compose files and scripts make of a missing one.
func (l *loader) readEnviron() {
	vars := map[string]string{}
	for _, entry := range l.environ {
		if name, text, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, envPrefix) && text != "" {
			vars[name] = text
		}
	}
	var known []string
	for _, sec := range l.schema {
		for _, k := range sec.keys {
			name := envName(sec.name, k.name)
			known = append(known, name)
			if text, ok := vars[name]; ok {
				l.put(sec.name, k.name, setting{text: trimmed(k, text), level: fromEnvironment, place: "environment " + name})
				delete(vars, name)
			}
		}
	}
	l.refuseTypos(vars, known)
}

// trimmed removes the blanks around a value, as in a file, but not those of a secret.
func trimmed(k key, text string) string {
	if k.secret {
		return text
	}
	return strings.TrimSpace(text)
}

// refuseTypos reports variables that look like a known one with a slip. Others
// stay unnoticed: a service named tdf-redis makes Kubernetes set
// TDF_REDIS_SERVICE_HOST, and programs see TDF_TASK_ID and so on.
func (l *loader) refuseTypos(vars map[string]string, known []string) {
	for _, entry := range l.environ {
		name, _, _ := strings.Cut(entry, "=")
		if _, left := vars[name]; !left {
			continue
		}
		delete(vars, name)
		for _, candidate := range known {
			if task.Distance(name, candidate) <= 2 {
				l.report(&Error{
					File: "environment " + name, Problem: "unknown variable",
					Remedy: "did you mean " + candidate + "?", Err: ErrUnknown,
				})
				break
			}
		}
	}
}

// readFlags adds the settings of the command line.
func (l *loader) readFlags() {
	for _, flag := range l.flags {
		l.readFlag(flag)
	}
}

func (l *loader) readFlag(flag string) {
	const place = "flag --set"
	name, text, given := strings.Cut(flag, "=")
	secName, keyName, dotted := strings.Cut(strings.TrimSpace(name), ".")
	if !given || !dotted {
		l.report(&Error{
			File: place, Problem: "not of the form section.key=value",
			Remedy: "write for example --set server.round_duration=0.5", Err: ErrInvalid,
		})
		return
	}
	sec := l.schema.section(secName)
	k, ok := sec.key(keyName)
	var problem *Error
	switch {
	case sec.name == "":
		problem = l.schema.unknownSection(secName)
	case !ok:
		problem = l.schema.unknownKey(keyName, sec)
	case k.secret:
		problem = &Error{
			Section: secName, Key: keyName, Err: ErrInvalid,
			Problem: "a secret on the command line can be read by every user of this machine",
			Remedy:  "set " + envName(secName, keyName) + " or write it into the file",
		}
	default:
		l.put(secName, keyName, setting{text: strings.TrimSpace(text), level: fromFlag, place: place})
		return
	}
	problem.File = place
	l.report(problem)
}
