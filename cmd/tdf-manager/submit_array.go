package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
)

// placeholder stands for the number of a task of an array.
const placeholder = "{}"

// mostArray bounds what a slip such as 1-999999999999 can open.
const mostArray = 1_000_000

// fromArray makes a task of each number.
func (sub *submission) fromArray(s *session) ([]line, error) {
	numbers, err := parseArray(sub.array)
	if err != nil {
		return nil, err
	}
	if sub.form.key != "" && !strings.Contains(sub.form.key, placeholder) {
		return nil, cli.Usagef("--key %q would be the key of every task; write %s in it for the number", sub.form.key, placeholder)
	}
	words := s.args
	if !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, placeholder) }) {
		words = slices.Concat(words, []string{placeholder})
	}
	lines := make([]line, len(numbers))
	for i, n := range numbers {
		f := sub.form
		number := strconv.Itoa(n)
		own := make([]string, len(words))
		for j, word := range words {
			own[j] = strings.ReplaceAll(word, placeholder, number)
		}
		f.setWords(own)
		f.key = strings.ReplaceAll(f.key, placeholder, number)
		lines[i] = line{form: f}
	}
	return lines, nil
}

// parseArray reads 1-100, 0-30:10 or 1,3,5-8.
func parseArray(text string) ([]int, error) {
	if _, throttle, ok := strings.Cut(text, "%"); ok {
		return nil, cli.Usagef("--array %q: how many run at a time is an attribute of the queue; "+
			"write tdf-manager queue set NAME threads=%s", text, throttle)
	}
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
			return nil, cli.Usagef("--array %q: %q is no range of numbers; write such as 1-100, 0-30:10 or 1,3,5-8", text, part)
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
