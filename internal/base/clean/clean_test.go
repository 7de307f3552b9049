package clean

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		"plain text, ä and €":       "plain text, ä and €",
		"a\nINFO forged\r\n\tb":     `a\nINFO forged\r\n\tb`,
		"\x1b[31mred\x00\x7f\u0085": `\x1b[31mred\x00\x7f\u0085`,
		"\u202egnp.exe\u2066":       `\u202egnp.exe\u2066`,
		"a\u2028b\u2029c\u200bd":    `a\u2028b\u2029c\u200bd`,
		"\xff\xc3(":                 `\xff\xc3(`,
		"\ufffd":                    "\ufffd",
		"\U000e0001":                `\U000e0001`,
	} {
		if got := Line(in, 0); got != want {
			t.Errorf("Line(%q) = %s, want %s", in, got, want)
		}
	}
	if got := Lines("a\n\tb\r\n\x1b\xff", 0); got != "a\n\tb\\r\n\\x1b\\xff" {
		t.Errorf("Lines = %q", got)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abc..."},
		{"ääää", 7, "ää..."},
		{"ääää", 8, "ääää"},
		{"ab\nc", 5, `ab\nc`},
		{"abc\nd", 5, `ab...`},
		{"a\n\n\n", 6, `a\n...`},
		{"\x1b\x1b", 6, `...`},
		{"abcd", 2, ".."},
		{strings.Repeat("x", 400), 300, strings.Repeat("x", 297) + "..."},
	} {
		if got := Line(c.in, c.limit); got != c.want {
			t.Errorf("Line(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

func FuzzLine(f *testing.F) {
	for _, seed := range []string{"", "abc", "ä\nö", "\x1b[0m\u202e\xff\xfe", "\ufffd\U000e0001", `\n`} {
		f.Add(seed, 0)
		f.Add(seed, 7)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		line := Line(s, limit)
		if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("Line(%q, %d) = %q", s, limit, line)
		}
		if limit > 0 && len(line) > limit {
			t.Fatalf("%d bytes, at most %d allowed", len(line), limit)
		}
		if again := Line(line, limit); again != line {
			t.Fatalf("%q became %q", line, again)
		}
		whole := Line(s, 0)
		if kept, cut := strings.CutSuffix(line, mark[:min(max(limit, 0), 3)]); line != whole && (!cut || !strings.HasPrefix(whole, kept)) {
			t.Fatalf("%q is no start of %q", line, whole)
		}
		text := Lines(s, limit)
		if got, want := strings.Count(text, "\n"), strings.Count(s, "\n"); limit <= 0 && got != want || got > want {
			t.Fatalf("%d line ends of %d", got, want)
		}
	})
}

func TestValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "canary": "***", `{"A":1}`: "***", "{}": "{}", `{"B":"canary","A":""}`: `{"A":"***","B":"***"}`,
	} {
		if got := Values(text); got != want {
			t.Errorf("%q is masked as %q, want %q", text, got, want)
		}
	}
}

func TestWriteJSON(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := WriteJSON(&out, []any{1.5, "a<b>&\x1b"})
	want := "[\n  1.5,\n  \"a<b>&\\u001b\"\n]\n"
	if err != nil || out.String() != want {
		t.Errorf("got %v %s", err, out.String())
	}
	if err := WriteJSON(&out, math.NaN()); err == nil {
		t.Error("NaN has no JSON form")
	}
}

func TestTailKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 300)
	if got, want := Tail(long), long[:400]+"..."; got != want {
		t.Errorf("got %q", got)
	}
}
