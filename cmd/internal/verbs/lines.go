package verbs

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/task"
)

// longestLine bounds a line; an input is no place for files.
const longestLine = 16 << 20

// eachOf makes a task of each line of a file. Flags stand for what a line leaves out.
func eachOf(s *session, file string, given task.Spec, read func(*task.Spec, string) error) ([]line, error) {
	flag := "each-line"
	if s.cmd.Flags().Changed("from-json") {
		flag = "from-json"
		if len(s.args) > 0 {
			return nil, cli.Usagef("words (%q) and --from-json cannot be given together; each object has its own", strings.Join(s.args, " "))
		}
	}
	in, name, err := s.open(file)
	if err != nil {
		return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("--%s: %w; write the path of a file, or - for stdin", flag, err))
	}
	defer in.Close()
	var lines []line
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, longestLine)
	for scan.Scan() {
		l := line{spec: given, file: name, number: len(lines) + 1}
		if err := read(&l.spec, strings.TrimSuffix(scan.Text(), "\r")); err != nil {
			return nil, cli.WithCode(cli.ExitUsage, l.at(err))
		}
		lines = append(lines, l)
	}
	if err := scan.Err(); err != nil {
		return nil, cli.WithCode(cli.ExitUsage, fmt.Errorf("%s:%d: %w; nothing was opened", name, len(lines)+1, err))
	}
	return lines, nil
}

// open opens a file; - is stdin.
func (s *session) open(file string) (in io.ReadCloser, name string, err error) {
	if file == "-" {
		return io.NopCloser(s.cmd.InOrStdin()), "stdin", nil
	}
	in, err = os.Open(file)
	return in, file, err
}

// readObject reads the fields of a JSON object, which has the names of Redis' hash fields. Numbers may be numbers or texts.
func readObject(spec *task.Spec, text string, now time.Time) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	var object map[string]json.RawMessage
	if err := decoder.Decode(&object); err != nil || object == nil {
		return fmt.Errorf(`not a JSON object such as {"program":"p","source":"s","input":"1 2"}: %w`, cmp.Or(err, errors.New("it is null")))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object; write one object a line")
	}
	if object["argv"] != nil && object["input"] != nil {
		return errors.New("fields input and argv exclude each other; give one of them")
	}
	known := taskFields(keyField, holdField)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("field %q is unknown; %s", name, meant(name, known, "known are "+strings.Join(known, ", ")))
		}
		if err := spec.SetJSON(name, object[name], now); err != nil {
			return err
		}
	}
	return nil
}

// taskFields are the names of the fields that somebody can give to any task, those of
// more included, sorted.
func taskFields(more ...string) []string {
	var names []string
	for _, f := range task.Fields() {
		if own := f.Name == keyField || f.Name == holdField; !f.Planned && (!own || slices.Contains(more, f.Name)) {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}
