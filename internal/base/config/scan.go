package config

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// source is the text of a file made ready for the INI parser, and where its
// sections ("name]") and keys ("name]key") stand.
type source struct {
	text  []byte
	lines map[string]int
}

// scanner checks the form of each line before the INI parser sees it. The
// parser knows no line numbers, merges what is written twice without a word,
// and takes values that start with a quote character apart.
type scanner struct {
	path     string
	section  string
	out      bytes.Buffer
	lines    map[string]int
	problems []*Error
}

// scan checks every line; values that the parser would change are protected.
func scan(path string, data []byte) (*source, []*Error) {
	s := &scanner{path: path, lines: map[string]int{}}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		s.refuse(0, "is not a text file in UTF-8", "save it as UTF-8")
		return nil, s.problems
	}
	for i, line := range strings.Split(string(data), "\n") {
		s.line(i+1, strings.TrimSpace(line))
	}
	return &source{text: s.out.Bytes(), lines: s.lines}, s.problems
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
		s.refuse(n, "this line starts like a section, but is none", "write [name] on a line of its own")
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
