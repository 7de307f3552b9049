package manager

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever parts come in whatever order, what is written is the stream in
// order, each byte at most once, and exactly so much is told to be
// missing; with a complete record nothing is.
func TestStreamPutsPartsTogether(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n")), 0, 40, -1).Draw(t, "text")
		var out, want strings.Builder
		s := &stream{emit: func(o Output) error {
			if o.LeftOut > 0 {
				fmt.Fprintf(&out, "[%d bytes left out]", o.LeftOut)
			}
			out.WriteString(o.Text)
			return nil
		}}
		at := 0
		for range rapid.IntRange(0, 6).Draw(t, "parts") {
			from := rapid.IntRange(0, len(text)).Draw(t, "from")
			to := rapid.IntRange(from, len(text)).Draw(t, "to")
			if err := s.put(int64(from), text[from:to]); err != nil {
				t.Fatal(err)
			}
			if from > at {
				fmt.Fprintf(&want, "[%d bytes left out]", from-at)
				at = from
			}
			if to > at {
				want.WriteString(text[at:to])
				at = to
			}
		}
		want.WriteString(text[at:])
		if err := s.end(record{text: text, size: -1}); err != nil || out.String() != want.String() {
			t.Fatalf("wrote %q, %v, want %q", out.String(), err, want.String())
		}
	})
}

// A record that was cut is known by its offsets, also where the program itself
// writes such lines.
func TestRecordParts(t *testing.T) {
	t.Parallel()
	marker := func(n int) string { return "\n[tdf: " + strconv.Itoa(n) + " bytes left out]\n" }
	for name, c := range map[string]struct {
		text string
		size int64
		want []part
	}{
		"whole":             {"abc", -1, []part{{0, "abc"}}},
		"whole, with size":  {"abc", 3, []part{{0, "abc"}}},
		"cut":               {"abc" + marker(94) + "xyz", 100, []part{{0, "abc"}, {97, "xyz"}}},
		"a false one":       {"a" + marker(5) + "c" + marker(94) + "xyz", 124, []part{{0, "a" + marker(5) + "c"}, {121, "xyz"}}},
		"a near one":        {"a" + marker(100) + "c" + marker(94) + "xyz", 126, []part{{0, "a" + marker(100) + "c"}, {123, "xyz"}}},
		"TDF's own words":   {"abc" + marker(94) + "xyz\nTERMINATED", 100, []part{{0, "abc"}, {97, "xyz\nTERMINATED"}}},
		"a marker, no size": {"abc" + marker(94) + "xyz", -1, []part{{0, "abc" + marker(94) + "xyz"}}},
	} {
		if got := (record{c.text, c.size}).parts(); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+q, want %+q", name, fmt.Sprint(got), fmt.Sprint(c.want))
		}
	}
}
