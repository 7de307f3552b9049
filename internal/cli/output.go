package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteJSON writes v as one JSON value with a line end, indented, and without
// the escapes that only HTML needs. Use Float for numbers that may be infinite.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// Table writes rows in aligned columns; every cell is made Safe.
type Table struct{ w *tabwriter.Writer }

// NewTable starts a table with a line of headers; without any there is no such line.
func NewTable(w io.Writer, headers ...string) *Table {
	t := &Table{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	if len(headers) > 0 {
		cells := make([]any, len(headers))
		for i, h := range headers {
			cells[i] = h
		}
		t.Row(cells...)
	}
	return t
}

// Row adds a line; cells are written as fmt.Print does. Nothing appears before Flush.
func (t *Table) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = Safe(fmt.Sprint(cell))
	}
	// An error stays with the tabwriter and comes out of Flush.
	_, _ = io.WriteString(t.w, strings.Join(texts, "\t")+"\n")
}

// Flush writes the table.
func (t *Table) Flush() error {
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
