package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/tdf-go/tdf/internal/base/clean"
)

// Output is what a command writes for its caller. It keeps the first error, such
// as that of a closed pipe, and writes nothing after it: a command looks at Err
// once, at its end.
type Output struct {
	w   io.Writer
	err error
}

// NewOutput returns an output that goes to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Err returns the first error.
func (o *Output) Err() error { return o.err }

// Printf writes a text.
func (o *Output) Printf(format string, args ...any) {
	o.write("write", fmt.Sprintf(format, args...))
}

func (o *Output) write(what, text string) {
	if o.err != nil {
		return
	}
	if _, err := io.WriteString(o.w, text); err != nil {
		o.err = fmt.Errorf("%s: %w", what, err)
	}
}

// JSON writes v as [clean.WriteJSON] does.
func (o *Output) JSON(v any) {
	if o.err == nil {
		o.err = clean.WriteJSON(o.w, v)
	}
}

// Table starts a table with a line of headers; without any there is no such line.
func (o *Output) Table(headers ...string) *Table {
	t := &Table{out: o}
	t.w = tabwriter.NewWriter(&t.rows, 0, 8, 2, ' ', 0)
	if len(headers) > 0 {
		cells := make([]any, len(headers))
		for i, h := range headers {
			cells[i] = h
		}
		t.Row(cells...)
	}
	return t
}

// Table writes rows in aligned columns; every cell is made Safe, and no line ends
// in blanks.
type Table struct {
	w    *tabwriter.Writer
	rows bytes.Buffer
	out  *Output
}

// Row adds a line; cells are written as fmt.Print does. Nothing appears before Flush.
func (t *Table) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = Safe(fmt.Sprint(cell))
	}
	// A buffer takes everything.
	_, _ = io.WriteString(t.w, strings.Join(texts, "\t")+"\n")
}

// Some adds a line about something that has a value; without one it adds none.
func (t *Table) Some(name, value string) {
	if value != "" {
		t.Row(name, value)
	}
}

// Flush writes the table.
func (t *Table) Flush() {
	_ = t.w.Flush()
	var text strings.Builder
	for line := range strings.Lines(t.rows.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	t.rows.Reset()
	t.out.write("write table", text.String())
}

// helpWidth is the width of the help, in columns.
const helpWidth = 80

// wrap breaks the lines of each paragraph anew.
func wrap(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString("\n\n")
		}
		column := 0
		for j, word := range strings.Fields(paragraph) {
			switch {
			case j > 0 && column+1+len(word) > helpWidth:
				b.WriteByte('\n')
				column = 0
			case j > 0:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += len(word)
		}
	}
	return b.String()
}

// Safe escapes everything in a text that is not visible: control characters
// (with them ANSI sequences and line ends), invisible and reordering Unicode
// characters, and bytes that are not UTF-8. Text from tasks goes through it
// before it reaches a terminal.
func Safe(s string) string { return clean.Line(s, 0) }

// SafeLines is Safe for text of several lines: line ends and tabs stay.
func SafeLines(s string) string { return clean.Lines(s, 0) }
