package config

import (
	"errors"
	"fmt"
	"io"
	"os"

	"gopkg.in/ini.v1"
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
	src, problems := scan(path, data)
	for _, p := range problems {
		l.report(p)
	}
	if len(problems) > 0 {
		return
	}
	l.parse(path, src)
}

// parse reads what scan has found well-formed.
func (l *loader) parse(path string, src *source) {
	file, err := ini.LoadSources(ini.LoadOptions{
		IgnoreContinuation:      true, // a value may end in a backslash
		IgnoreInlineComment:     true, // a password may contain # and ;
		PreserveSurroundedQuote: true, // as Python does
	}, src.text)
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

func (l *loader) takeSection(path string, src *source, sec *ini.Section) {
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
