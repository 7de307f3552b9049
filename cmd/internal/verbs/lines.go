package verbs

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/statemachine"
)

// fromLines makes a task of each line; the line is its input.
func (sub *submission) fromLines(s *session) ([]line, error) {
	return sub.eachOf(s, sub.eachLine, func(f *form, text string) error {
		f.input = text
		return nil
	})
}

// fromObjects makes a task of each line, which is a JSON object with the names
// of Redis' hash fields. Flags stand for what an object leaves out.
func (sub *submission) fromObjects(s *session) ([]line, error) {
	return sub.eachOf(s, sub.fromJSON, func(f *form, text string) error { return f.readObject(text) })
}

// longestLine bounds a line; an input is no place for files.
const longestLine = 16 << 20

func (sub *submission) eachOf(s *session, file string, read func(*form, string) error) ([]line, error) {
	if len(s.args) > 0 {
		return nil, cli.Usagef("words (%q) and a file of tasks cannot be given together", strings.Join(s.args, " "))
	}
	in, name, err := openInput(s, file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var lines []line
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, longestLine)
	for scan.Scan() {
		l := line{form: sub.form, file: name, number: len(lines) + 1}
		if err := read(&l.form, strings.TrimSuffix(scan.Text(), "\r")); err != nil {
			return nil, cli.WithCode(cli.ExitUsage, l.at(err))
		}
		lines = append(lines, l)
	}
	if err := scan.Err(); err != nil {
		return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("%s:%d: %w; nothing was opened", name, len(lines)+1, err))
	}
	return lines, nil
}

func openInput(s *session, file string) (io.ReadCloser, string, error) {
	if file == "-" {
		return io.NopCloser(s.cmd.InOrStdin()), "stdin", nil
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, "", cli.WithCode(cli.ExitUsage, fmt.Errorf("read tasks: %w", err))
	}
	return in, file, nil
}

// readObject reads a JSON object into the form. Numbers may be numbers or texts.
func (f *form) readObject(text string) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	var object map[string]json.RawMessage
	if err := decoder.Decode(&object); err != nil || object == nil {
		return fmt.Errorf(`not a JSON object such as {"program":"p","source":"s","input":"1 2"}: %w`, orEmpty(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object; write one object a line")
	}
	if object["argv"] != nil && object["input"] != nil {
		return errors.New("fields input and argv exclude each other; give one of them")
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if err := f.readField(name, object[name]); err != nil {
			return err
		}
	}
	return nil
}

func (f *form) readField(name string, raw json.RawMessage) error {
	switch name {
	case "argv":
		if err := json.Unmarshal(raw, &f.argv); err != nil || f.argv == nil {
			return &statemachine.FieldError{Field: name, Value: string(raw), Want: "a list of texts"}
		}
		return nil
	case "input":
		return readValue(name, raw, &f.input)
	case holdField:
		return readHold(raw, &f.hold)
	case "labels":
		return readPairs(name, raw, &f.labels)
	case "resources":
		return readPairs(name, raw, &f.resources)
	case "retry_exit_codes":
		return readCodes(name, raw, &f.retryExitCodes)
	case "fatal_exit_codes":
		return readCodes(name, raw, &f.fatalExitCodes)
	}
	known := []string{"argv", "input", "hold", "labels", "resources"}
	for _, field := range f.texts() {
		if field.name == name {
			return readValue(name, raw, field.into)
		}
		known = append(known, field.name)
	}
	slices.Sort(known)
	return fmt.Errorf("field %q is unknown; %s", name, meant(name, known, "known are "+strings.Join(known, ", ")))
}

func orEmpty(err error) error {
	if err == nil {
		return errors.New("it is null")
	}
	return err
}

// readValue takes a text, or a number where the field is one.
func readValue(name string, raw json.RawMessage, into *string) error {
	if err := json.Unmarshal(raw, into); err == nil && !bytes.Equal(raw, []byte("null")) {
		return nil
	}
	switch name {
	case programField, sourceField, "input", "fail_on", "charge", queueField, envField, "key":
		return &statemachine.FieldError{Field: name, Value: string(raw), Want: "a text"}
	}
	var number json.Number
	if err := json.Unmarshal(raw, &number); err != nil || number == "" {
		return &statemachine.FieldError{Field: name, Value: string(raw), Want: "a number or a text"}
	}
	*into = number.String()
	return nil
}

// heldText is the reason of a task that is held without one.
const heldText = "held when it was opened"

// readHold takes a reason, or true for none in particular.
func readHold(raw json.RawMessage, into *string) error {
	var held bool
	if err := json.Unmarshal(raw, &held); err == nil && string(raw) != "null" {
		*into = map[bool]string{true: heldText}[held]
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil || *into == "" || string(raw) == "null" {
		return &statemachine.FieldError{Field: holdField, Value: string(raw), Want: "true, false, or the reason as a text"}
	}
	return nil
}

// readPairs takes pairs as {"gpu":1}, as ["gpu=1"], or as the text "gpu=1,mem=4".
func readPairs(name string, raw json.RawMessage, into *string) error {
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if decoder.Decode(&object) == nil && object != nil {
		pairs := make([]string, 0, len(object))
		for _, key := range slices.Sorted(maps.Keys(object)) {
			pairs = append(pairs, fmt.Sprintf("%s=%v", key, object[key]))
		}
		*into = cmp.Or(strings.Join(pairs, ","), noneText)
		return nil
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil && list != nil {
		*into = cmp.Or(strings.Join(list, ","), noneText)
		return nil
	}
	if json.Unmarshal(raw, into) == nil && string(raw) != "null" {
		return nil
	}
	return &statemachine.FieldError{Field: name, Value: string(raw), Want: `pairs such as {"a":1} or ["a=1"]`}
}

// readCodes takes [1,2] or the text "1,2".
func readCodes(name string, raw json.RawMessage, into *string) error {
	var list []int
	if json.Unmarshal(raw, &list) == nil && list != nil {
		texts := make([]string, len(list))
		for i, n := range list {
			texts[i] = strconv.Itoa(n)
		}
		*into = cmp.Or(strings.Join(texts, ","), noneText)
		return nil
	}
	if json.Unmarshal(raw, into) == nil && string(raw) != "null" {
		return nil
	}
	return &statemachine.FieldError{Field: name, Value: string(raw), Want: "exit codes such as [1,2,75]"}
}
