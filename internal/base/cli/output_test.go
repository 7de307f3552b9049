package cli

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"testing/quick"
	"unicode"
	"unicode/utf8"
)

func TestSafe(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ä €":     "plain ä €",
		"a\x1b[31mb":    `a\x1b[31mb`,
		"a\nb\tc\rd":    `a\nb\tc\rd`,
		"\x00\x7f\xff":  `\x00\x7f\xff`,
		"\u202ea\u200b": `\u202ea\u200b`,
		"\u0085":        `\u0085`,
		"\U000e0001":    `\U000e0001`,
		"\ufffd":        "\ufffd",
	} {
		if got := Safe(in); got != want {
			t.Errorf("Safe(%q) = %q; want %q", in, got, want)
		}
	}
	if got := SafeLines("a\n\tb\x1b"); got != "a\n\tb\\x1b" {
		t.Errorf("SafeLines = %q", got)
	}
}

func TestSafeIsAlwaysVisible(t *testing.T) {
	t.Parallel()
	visible := func(s string) bool {
		got := Safe(s)
		return utf8.ValidString(got) && !strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) })
	}
	anyBytes := func(b []byte) bool { return visible(string(b)) }
	if err := errors.Join(quick.Check(visible, nil), quick.Check(anyBytes, nil)); err != nil {
		t.Error(err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := NewOutput(&out)
	table := o.Table("ID", "STATE")
	table.Row(1, "open")
	table.Row(12345, "a\tb\nc\x1b[2J")
	table.Row(7, "") // without blanks at the end of the line
	table.Some("left out", "")
	table.Some("8", "said")
	if table.Flush(); o.Err() != nil {
		t.Fatal(o.Err())
	}
	want := "ID     STATE\n1      open\n12345  a\\tb\\nc\\x1b[2J\n7\n8      said\n"
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

// errWriter is a full disk.
type errWriter struct{}

var errFull = errors.New("no space left")

func (errWriter) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrorsComeOut(t *testing.T) {
	t.Parallel()
	for what, write := range map[string]func(*Output){
		"write":       func(o *Output) { o.Printf("text") },
		"write table": func(o *Output) { o.Table("A").Flush() },
		"write JSON":  func(o *Output) { o.JSON(1) },
	} {
		o := NewOutput(errWriter{})
		write(o)
		o.w = io.Discard
		o.Printf("more") // the first error stays
		if err := o.Err(); !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), what+": ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNothingFollowsAnError: what comes after an error would be out of place.
func TestNothingFollowsAnError(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := NewOutput(&out)
	o.JSON(math.NaN())
	o.Printf("text")
	o.JSON(1)
	o.Table("A").Flush()
	if o.Err() == nil || out.Len() > 0 {
		t.Errorf("%v, and %q", o.Err(), out.String())
	}
}

func TestBuildOf(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{Main: debug.Module{Version: "v9"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "fed"}}}
	for _, tc := range []struct {
		version, commit string
		info            *debug.BuildInfo
		want            string
	}{
		{"v1", "abc", info, "v1 (commit abc, go1."},
		{"", "", info, "v9 (commit fed, go1."},
		{"", "", &debug.BuildInfo{}, "unknown (commit unknown, go1."},
		{"", "", nil, "unknown (commit unknown, go1."},
	} {
		if got := buildOf(tc.version, tc.commit, tc.info).String(); !strings.HasPrefix(got, tc.want) {
			t.Errorf("got %s; want %s", got, tc.want)
		}
	}
}
