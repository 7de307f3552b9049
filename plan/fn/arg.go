package fn

import (
	"fmt"
	"strconv"
	"strings"
)

// Arg is an argument of type A for a call: a [Value], the *[Future] of another call, or
// [All] of several.
type Arg[A any] interface {
	// bind adds to the call what the argument needs, and says how it is written there.
	bind(c *call) word[A]
}

// word is an argument as it is written into a task: JSON, or references, which JSON
// never looks like: "$1" is the result of the first need, "$2:text" the output of the
// second, and "[$1..3,$5]" a list of results.
type word[A any] string

// Value is an argument that is known. It is kept in the task, so what is large should
// be the result of a function, which is kept once.
func Value[A any](v A) Arg[A] { return known[A]{v} }

type known[A any] struct{ value A }

func (k known[A]) bind(c *call) word[A] {
	text, err := encode(k.value)
	if err != nil {
		c.refuse(err)
	}
	return word[A](text)
}

// All makes one argument of several futures: a slice of their values in that order.
// A call needs at most 1000 others; for more, add in layers.
func All[A any](of ...*Future[A]) Arg[[]A] { return list[A](of) }

type list[A any] []*Future[A]

func (l list[A]) bind(c *call) word[[]A] {
	runs := make([]run, 0, 1)
	for _, f := range l {
		r := ref{c.need(f), f != nil && f.text}
		if n := len(runs); n > 0 && runs[n-1].text == r.text {
			runs[n-1].last++
			continue
		}
		runs = append(runs, run{r, r.need})
	}
	parts := make([]string, len(runs))
	for i, r := range runs {
		parts[i] = r.String()
	}
	return word[[]A]("[" + strings.Join(parts, ",") + "]")
}

// ref is a result that an argument stands for: that of the need of this number, from
// 1, as JSON or as a text.
type ref struct {
	need int
	text bool
}

// run is references to results that stand side by side.
type run struct {
	ref

	last int
}

const textual = ":text"

// String is how references are written.
func (r run) String() string {
	s := "$" + strconv.Itoa(r.need)
	if r.last > r.need {
		s += ".." + strconv.Itoa(r.last)
	}
	if r.text {
		s += textual
	}
	return s
}

// references reads what an argument stands for; several says that it is a list. JSON
// stands for none.
func references(word string) (refs []ref, several bool, err error) {
	inner, several := word, strings.HasPrefix(word, "[$") && strings.HasSuffix(word, "]")
	switch {
	case several:
		inner = word[1 : len(word)-1]
	case !strings.HasPrefix(word, "$"):
		return nil, false, nil
	}
	for part := range strings.SplitSeq(inner, ",") {
		r, err := parseRun(part)
		if err != nil {
			return nil, several, err
		}
		for n := r.need; n <= r.last; n++ {
			refs = append(refs, ref{n, r.text})
		}
	}
	return refs, several, nil
}

func parseRun(part string) (r run, err error) {
	numbers, text := strings.CutSuffix(strings.TrimPrefix(part, "$"), textual)
	first, last, found := strings.Cut(numbers, "..")
	if !found {
		last = first
	}
	r.text = text
	if r.need, err = strconv.Atoi(first); err == nil {
		r.last, err = strconv.Atoi(last)
	}
	if err != nil || !strings.HasPrefix(part, "$") || r.need < 1 || r.last < r.need || r.last > most {
		return run{}, fmt.Errorf("%q is no reference to a result, such as $1, $2..5 or $6%s", part, textual)
	}
	return r, nil
}

// most bounds what a reference may name; a task needs at most 1000 others.
const most = 1000
