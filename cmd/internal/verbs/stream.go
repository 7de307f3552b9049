package verbs

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/base/cli"
)

// The two streams of a program, by the fields of their records.
const (
	outputStream = "output"
	errorStream  = "error"
)

// stream writes what one round wrote, put together from parts that may overlap,
// come twice, or leave something out between them.
type stream struct {
	out io.Writer
	// at is how many bytes of the program are written or left out so far.
	at int64
	// midLine says that the last byte written was not the end of a line.
	midLine bool
}

// put writes what is new of a part that begins offset bytes into the stream.
// Where something is missing before it, a line says how much.
func (s *stream) put(offset int64, data string) error {
	if offset > s.at {
		if err := s.leaveOut(offset - s.at); err != nil {
			return err
		}
	}
	known := s.at - offset
	if known >= int64(len(data)) {
		return nil
	}
	s.at = offset + int64(len(data))
	return s.write(data[known:])
}

// leaveOut writes the line that stands for missing bytes.
func (s *stream) leaveOut(missing int64) error {
	s.at += missing
	if err := s.flush(); err != nil {
		return err
	}
	text := fmt.Sprintf("[tdf: %d bytes left out]\n", missing)
	if s.midLine {
		text = "\n" + text
	}
	return s.write(text)
}

func (s *stream) write(text string) error {
	s.midLine = text[len(text)-1] != '\n'
	if _, err := io.WriteString(s.out, text); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// end writes what is left of the record of the round, and of parts that came
// while it ran.
func (s *stream) end(r record, more ...part) error {
	parts := append(r.parts(), more...)
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.offset, b.offset) })
	for _, p := range parts {
		if err := s.put(p.offset, p.data); err != nil {
			return err
		}
	}
	if r.size > s.at { // a record that somebody else has cut
		return s.leaveOut(r.size - s.at)
	}
	return s.flush()
}

// flush writes what a terminal still keeps back.
func (s *stream) flush() error {
	if t, ok := s.out.(*terminal); ok {
		if err := t.Flush(); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// record is what Redis holds of a stream once the round has ended.
type record struct {
	text string
	// size is the number of bytes the program wrote where some of them were left
	// out of text, else -1.
	size int64
}

// part is a piece of a stream and its place.
type part struct {
	offset int64
	data   string
}

var leftOut = regexp.MustCompile(`\n\[tdf: (\d{1,18}) bytes left out\]\n`)

// parts takes a record apart at the marker between head and tail. The program
// may have written such a line too: the marker is the one with which the sizes
// add up. What follows the tail, in a record of stderr, is TDF's own.
func (r record) parts() []part {
	if r.size < 0 {
		return []part{{0, r.text}}
	}
	var near []part
	for _, m := range leftOut.FindAllStringSubmatchIndex(r.text, -1) {
		missing, err := strconv.ParseInt(r.text[m[2]:m[3]], 10, 64)
		head, tail := int64(m[0]), r.text[m[1]:]
		switch end := head + missing + int64(len(tail)); {
		case err != nil || head+missing > r.size || end < r.size:
		case end == r.size:
			return []part{{0, r.text[:head]}, {head + missing, tail}}
		case near == nil:
			near = []part{{0, r.text[:head]}, {head + missing, tail}}
		}
	}
	if near != nil {
		return near
	}
	return []part{{0, r.text}}
}

// terminal writes text of programs to a terminal, control characters escaped. A
// character that comes in two writes is not taken for garbage: its first bytes
// wait for the others.
type terminal struct {
	w    io.Writer
	rest []byte
}

// Write never writes less than it was given, except with an error.
func (t *terminal) Write(p []byte) (int, error) {
	text := slices.Concat(t.rest, p)
	cut := len(text) - unfinished(text)
	t.rest = text[cut:]
	if _, err := io.WriteString(t.w, cli.SafeLines(string(text[:cut]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what waits: the others do not come.
func (t *terminal) Flush() error {
	text := string(t.rest)
	t.rest = nil
	_, err := io.WriteString(t.w, cli.SafeLines(text))
	return err
}

// unfinished is the number of bytes at the end that may begin a character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		last := text[len(text)-n:]
		if utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
