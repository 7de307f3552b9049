package verbs

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/returned"
	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// resultRow is what came of a task: of the last round that a worker has begun.
type resultRow struct {
	ID      int64    `json:"id"`
	Key     string   `json:"key,omitempty"`
	Program string   `json:"program"`
	Words   []string `json:"words,omitzero"`
	// Meta are the attributes.
	Meta map[string]string `json:"meta,omitempty"`
	// State is how the task ended, or where it is.
	State    statemachine.State `json:"state"`
	ExitCode *int               `json:"exit_code,omitempty"`
	Start    time.Time          `json:"start,omitzero"`
	WallTime float64            `json:"wall_time,omitempty"`
	Worker   string             `json:"worker,omitempty"`
	Output   *string            `json:"output,omitempty"`
	Error    *string            `json:"error,omitempty"`
	// Files are those of the round that were returned.
	Files task.Files `json:"files,omitzero"`
	// Partial names what is not whole: output, error, files, or record.
	Partial []string `json:"partial,omitempty"`
	// RetriedBy is the task that repeats this one.
	RetriedBy int64 `json:"retried_by,omitempty"`
	// Base64 has the texts that are not UTF-8, which are nowhere else then.
	Base64 map[string]string `json:"base64,omitempty"`

	// Whole are the streams that are cut here.
	Whole []task.Files `json:"whole,omitempty"`

	// missing is what of Partial a sink has not either, away where streams are that cannot be read here.
	missing []string
	away    string

	named
	input, output, stderr string
	ended                 time.Time // the round
}

// partialRecord is what is not whole of a damaged record.
const partialRecord = "record"

func newResultRow(t *task.Task) *resultRow {
	r := &resultRow{
		ID: t.ID, Key: t.Key, Program: strings.ToValidUTF8(t.Program, "\ufffd"), State: t.End(),
		Meta: t.Meta, RetriedBy: t.RetriedBy, named: namedBy(t), input: task.InputText(t.Input, t.Argv),
	}
	r.Words = append([]string{}, r.words...)
	if last := t.Last(); last != nil {
		r.take(last)
	}
	if t.Err != nil {
		r.Partial = []string{partialRecord}
	}
	r.missing = r.Partial
	r.Output, r.Error = &r.output, &r.stderr
	r.code()
	return r
}

// namedBy is what names the folder of a task.
func namedBy(t *task.Task) named {
	words := t.Argv
	if words == nil {
		words = process.SplitInput(t.Input)
	}
	return named{t.ID, t.Key, words}
}

// take takes what a round has.
func (r *resultRow) take(last *task.Round) {
	r.ExitCode, r.Worker, r.output, r.stderr = last.ExitCode, last.Worker, last.Output, cmp.Or(last.Error, last.Stderr)
	r.Files, r.Whole = last.Files, last.Whole
	if r.Start = last.Stamps[statemachine.StampBegun]; r.Start.IsZero() {
		r.Start = last.Stamps[string(statemachine.Running)]
	}
	if r.ended = endOfRound(last); !r.ended.IsZero() {
		r.WallTime = r.ended.Sub(r.Start).Seconds()
	}
	r.Partial = returned.NotWhole(last)
}

// endOfRound is the first moment after the beginning of a round; zero if it goes on.
func endOfRound(r *task.Round) (end time.Time) {
	before := []string{string(statemachine.Open), string(statemachine.Blocked), string(statemachine.Running), statemachine.StampBegun}
	for name, at := range r.Stamps {
		if !slices.Contains(before, name) && (end.IsZero() || at.Before(end)) {
			end = at
		}
	}
	return end
}

// code moves texts that are not UTF-8 to Base64.
func (r *resultRow) code() {
	for name, text := range map[string]string{
		keyField: r.Key, wordsField: r.input, workerField: r.Worker, returned.Output: r.output, returned.Error: r.stderr,
	} {
		if utf8.ValidString(text) {
			continue
		}
		if r.Base64 == nil {
			r.Base64 = map[string]string{}
		}
		r.Base64[name] = base64.StdEncoding.EncodeToString([]byte(text))
		switch name {
		case keyField:
			r.Key = ""
		case wordsField:
			r.Words = nil
		case workerField:
			r.Worker = ""
		case returned.Output:
			r.Output = nil
		case returned.Error:
			r.Error = nil
		}
	}
}

const wordsField = "words"

// writeJSON writes the row as a line of JSON.
func (r *resultRow) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("task %d: %w", r.ID, err)
	}
	return nil
}

// csvHead are the columns of [resultRow.cells].
func csvHead() []string {
	return []string{
		"id", keyField, programField, wordsField, "state", "exit_code", "start", "wall_time", workerField, returned.Output, returned.Error,
		filesFolder, "partial", "retried_by", "base64",
	}
}

// cells are the row in CSV, where a text that is not UTF-8 is in base64, and the last column names it.
func (r *resultRow) cells() []string {
	text := func(name, plain string) string { return cmp.Or(r.Base64[name], plain) }
	code, start, wall, retried, files := "", "", "", "", ""
	if r.Files.Count > 0 {
		files = strconv.Itoa(r.Files.Count)
	}
	if r.ExitCode != nil {
		code = strconv.Itoa(*r.ExitCode)
	}
	if !r.Start.IsZero() {
		start = r.Start.Format(time.RFC3339Nano)
	}
	if !r.ended.IsZero() {
		wall = strconv.FormatFloat(r.WallTime, 'f', -1, 64)
	}
	if r.RetriedBy > 0 {
		retried = strconv.FormatInt(r.RetriedBy, 10)
	}
	return []string{
		strconv.FormatInt(r.ID, 10), text(keyField, r.Key), r.Program, text(wordsField, r.input), strings.ToValidUTF8(string(r.State), "\ufffd"),
		code, start, wall, text(workerField, r.Worker), text(returned.Output, r.output), text(returned.Error, r.stderr), files,
		strings.Join(r.Partial, " "), retried, strings.Join(slices.Sorted(maps.Keys(r.Base64)), " "),
	}
}

// csvSink writes comma-separated values.
type csvSink struct{ w *csv.Writer }

func newCSVSink(out io.Writer) (resultSink, error) {
	c := &csvSink{csv.NewWriter(out)}
	return c, c.write(csvHead())
}

func (c *csvSink) take(r *resultRow) error { return c.write(r.cells()) }

func (c *csvSink) write(cells []string) error {
	if err := c.w.Write(cells); err != nil {
		return fmt.Errorf("csv: %w", err)
	}
	return nil
}

func (c *csvSink) close(error) error {
	c.w.Flush()
	return c.w.Error() //nolint:wrapcheck // that of the output
}

// objectSink writes lines of JSON.
type objectSink struct{ w *bufio.Writer }

func (o *objectSink) take(r *resultRow) error { return r.writeJSON(o.w) }

func (o *objectSink) close(error) error { return o.w.Flush() } //nolint:wrapcheck // that of the output

// tableSink prints a table for people, a page at a time.
type tableSink struct {
	out   io.Writer
	text  bytes.Buffer
	table *cli.Table
	rows  int
	// width is the width of the terminal in columns, 0 without a terminal.
	width int
}

func newTableSink(out io.Writer) *tableSink {
	t := &tableSink{out: out}
	if cli.IsTerminal(out) {
		t.width = terminalWidth(out)
	}
	head := []string{"ID", "STATE", "EXIT", "TIME", "WORKER", "INPUT", "OUTPUT OR ERROR"}
	if t.narrow() {
		head = slices.Delete(head, 2, 5)
	}
	t.table = cli.NewOutput(&t.text).Table(head...)
	return t
}

// narrow terminals have no room for all columns.
func (t *tableSink) narrow() bool { return t.width > 0 && t.width < 80 }

func (t *tableSink) take(r *resultRow) error {
	const inputWidth, outputWidth = 30, 60
	exit, took, text := "-", "-", r.output
	if r.ExitCode != nil {
		exit = strconv.Itoa(*r.ExitCode)
	}
	if !r.ended.IsZero() {
		took = r.ended.Sub(r.Start).Round(time.Millisecond).String()
	}
	if r.State != statemachine.Succeeded {
		text = cmp.Or(r.stderr, text)
	}
	cells := []any{
		r.ID, r.State, exit, took, cmp.Or(r.Worker, "-"), firstLine(r.input, inputWidth), firstLine(text, max(outputWidth, t.width)),
	}
	if t.narrow() {
		cells = slices.Delete(cells, 2, 5)
	}
	t.table.Row(cells...)
	if t.rows++; t.rows%page == 0 {
		return t.flush()
	}
	return nil
}

// firstLine is the first line of a text, and dots if there are more.
func firstLine(text string, most int) string {
	line, rest, _ := strings.Cut(text, "\n")
	if line = clean.Shorten(line, most); rest != "" && !strings.HasSuffix(line, "...") {
		line += " ..."
	}
	return line
}

func (t *tableSink) close(error) error {
	if t.rows == 0 {
		return nil
	}
	return t.flush()
}

// flush writes the rows; on a terminal each is a line.
func (t *tableSink) flush() error {
	t.table.Flush()
	defer t.text.Reset()
	for line := range strings.Lines(t.text.String()) {
		if t.width > 0 {
			line = ansi.Truncate(strings.TrimSuffix(line, "\n"), t.width, "…") + "\n"
		}
		if _, err := io.WriteString(t.out, line); err != nil {
			return err
		}
	}
	return nil
}
