package verbs

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/task"
)

// specs are the tasks asked for.
func (sub *submission) specs(ctx context.Context, s *session) ([]task.Spec, error) {
	now, err := s.manager.Now(ctx)
	if err != nil {
		return nil, err
	}
	given, err := sub.given(now)
	if err != nil {
		return nil, err
	}
	if sub.uploaded != "" {
		given.Source = task.BlobSource(sub.uploaded)
	}
	var lines []line
	switch flags := s.cmd.Flags(); {
	case flags.Changed("each-line"):
		lines, err = eachOf(s, sub.eachLine, given, func(spec *task.Spec, text string) error {
			*spec = sub.ofLine(s, given, text)
			return nil
		})
	case flags.Changed("from-json"):
		lines, err = eachOf(s, sub.fromJSON, given, func(spec *task.Spec, text string) error { return answer.ReadTask(spec, []byte(text), now) })
	case flags.Changed("array"):
		lines, err = sub.fromArray(s, given)
	default:
		lines = []line{{spec: sub.withWords(given, s.args)}}
	}
	if err != nil {
		return nil, err
	}
	return sub.checked(ctx, s, lines, given.Stdin)
}

// checked are the tasks of lines, if all of them can be opened. stdin is what the flags say of it.
func (sub *submission) checked(ctx context.Context, s *session, lines []line, stdin string) ([]task.Spec, error) {
	specs := make([]task.Spec, len(lines))
	checkQueue := s.queueCheck(ctx)
	var before task.Spec
	for i, l := range lines {
		specs[i] = l.spec
		err := s.manager.Check(l.spec)
		if err == nil {
			err = checkQueue(l.spec.Queue)
		}
		if err == nil && (i == 0 || l.spec.Source != before.Source) {
			err = badSource(l.spec.Source)
		}
		if fromHere := sub.stdin == "-" && l.spec.Stdin == stdin; err == nil && !fromHere && l.spec.Stdin != before.Stdin {
			err = badStdin(l.spec.Stdin)
		}
		if err != nil {
			return nil, l.at(err)
		}
		before = l.spec
	}
	s.warnNoSource(ctx, specs)
	return specs, nil
}

// ofLine is the task of a line.
func (sub *submission) ofLine(s *session, given task.Spec, text string) task.Spec {
	switch {
	case len(s.args) > 0:
		return sub.withWords(given, filled(s.args, text))
	case sub.command:
		return sub.withWords(given, []string{"sh", "-c", text})
	}
	given.Input = text
	return given
}

// withWords makes words the command and its arguments, or those of the program: the input, or else the argument list.
func (sub *submission) withWords(spec task.Spec, words []string) task.Spec {
	if sub.command {
		spec.Source, words = task.CommandPrefix+words[0], words[1:]
		if sub.uploaded != "" {
			spec.Source += task.Pin(sub.uploaded)
		}
	}
	spec.Input = strings.Join(words, " ")
	if !slices.Equal(strings.Fields(spec.Input), words) && len(words) > 0 {
		spec.Input, spec.Argv = "", words
	}
	return spec
}

// queueCheck returns a check that a queue exists, which looks each up once: nothing of a submission is opened where one
// does not.
func (s *session) queueCheck(ctx context.Context) func(name string) error {
	seen := map[string]error{task.DefaultQueue: nil} // it is always there
	return func(name string) error {
		name = cmp.Or(name, s.cfg.TaskDefaults.Defaults[queueField], task.DefaultQueue)
		err, met := seen[name]
		if !met {
			_, err = readQueue(ctx, s, name)
			seen[name] = err
		}
		return err
	}
}

// line is a task with the place it was read from.
type line struct {
	spec   task.Spec
	file   string
	number int
}

// at says where in the file an error is.
func (l *line) at(err error) error {
	if l.number == 0 {
		return err
	}
	return fmt.Errorf("%s:%d: %w; nothing was opened", l.file, l.number, err)
}

// placeholder stands for the number or the line of a task.
const placeholder = "{}"

// filled are words with a text in the place of each placeholder, or else at their end.
func filled(words []string, text string) []string {
	if !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, placeholder) }) {
		return append(slices.Clip(words), text)
	}
	own := make([]string, len(words))
	for i, word := range words {
		own[i] = strings.ReplaceAll(word, placeholder, text)
	}
	return own
}

// mostArray bounds what a slip such as 1-999999999999 can open.
const mostArray = 1_000_000

// fromArray makes a task of each number. What follows a % is how many may run at a time.
func (sub *submission) fromArray(s *session, given task.Spec) ([]line, error) {
	text, most, limited := strings.Cut(sub.array, "%")
	if n, ok := digits(most); limited && (!ok || n == 0) {
		return nil, cli.Usagef("--array %q: %q is not how many may run at a time; write a number above 0, as in 1-100%%10", sub.array, most)
	} else if limited {
		sub.window = n
	}
	numbers, err := parseArray(text)
	if err != nil {
		return nil, err
	}
	if given.Key != "" && !strings.Contains(given.Key, placeholder) {
		return nil, cli.Usagef("--key %q would be the key of every task; write %s in it for the number", given.Key, placeholder)
	}
	lines := make([]line, len(numbers))
	for i, n := range numbers {
		number := strconv.Itoa(n)
		lines[i] = line{spec: sub.withWords(given, filled(s.args, number))}
		lines[i].spec.Key = strings.ReplaceAll(given.Key, placeholder, number)
	}
	return lines, nil
}

// parseArray reads 1-100, 0-30:10 or 1,3,5-8.
func parseArray(text string) ([]int, error) {
	var numbers []int
	for part := range strings.SplitSeq(text, ",") {
		span, step, stepped := strings.Cut(part, ":")
		from, to, ranged := strings.Cut(span, "-")
		if !ranged {
			to = from
		}
		if !stepped {
			step = "1"
		}
		first, ok1 := digits(from)
		last, ok2 := digits(to)
		by, ok3 := digits(step)
		if !ok1 || !ok2 || !ok3 || by == 0 || last < first || stepped && !ranged {
			return nil, cli.Usagef("--array %q: %q is not a range of numbers; write 1-100, 0-30:10 or 1,3,5-8", text, part)
		}
		if (last-first)/by >= mostArray-len(numbers) {
			return nil, cli.Usagef("--array %q: more than %d tasks; open them in several submissions", text, mostArray)
		}
		for n := first; n <= last; n += by {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// digits reads a number written in digits only.
func digits(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err == nil
}

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
