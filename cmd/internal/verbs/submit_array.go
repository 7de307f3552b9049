package verbs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/task"
)

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
