package control

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

func reader(t testing.TB) *Reader {
	t.Helper()
	return &Reader{Path: filepath.Join(t.TempDir(), "control")}
}

func say(t testing.TB, r *Reader, text string) {
	t.Helper()
	f, err := os.OpenFile(r.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func expect(t testing.TB, r *Reader, want Progress, wantChanged bool) {
	t.Helper()
	p, changed, err := r.Poll()
	if err != nil || p != want || changed != wantChanged {
		t.Errorf("got %+v, %v, %v; want %+v, %v", p, changed, err, want, wantChanged)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Progress{
		"progress=0.4 reading input\n":                     {0.4, "reading input"},
		"progress=40%  reading\n":                          {0.4, "reading"},
		"progress=1\r\n":                                   {1, ""},
		" progress = 100% \n":                              {1, ""},
		"progress=0\nprogress=.5 x\n":                      {0.5, "x"},
		"progress=0.5\nprogress=2\n":                       {0.5, ""},
		"progress=0.5\nprogress=0.7":                       {0.5, ""},
		"progress=-0\n":                                    {0, ""},
		"progress=0.1 a\x1b[31mb\x00\tc\n":                 {0.1, "a[31mb c"},
		"progress=0.1 \xff\u202e\n":                        {0.1, "\ufffd"},
		"progress=0.1 " + strings.Repeat("ü", 150) + "\n":  {0.1, strings.Repeat("ü", 100)},
		"progress=0.1 x" + strings.Repeat("ü", 150) + "\n": {0.1, "x" + strings.Repeat("ü", 99)},
		"progress=NaN\n":                                   {},
		"progress=inf%\n":                                  {},
		"progress=101%\n":                                  {},
		"progress=-1\n":                                    {},
		"progress=\n":                                      {},
		"progress=a lot\n":                                 {},
		"progress\n":                                       {},
		"result=0.5\n":                                     {},
		"":                                                 {},
	} {
		r := reader(t)
		say(t, r, line)
		expect(t, r, want, want != Progress{})
		if math.Signbit(r.progress.Part) {
			t.Errorf("%q: minus zero", line)
		}
	}
}

func TestPollFollows(t *testing.T) {
	t.Parallel()
	r := reader(t)
	expect(t, r, Progress{}, false) // no file yet
	say(t, r, "progress=0.25 first\nprogress=0.5")
	expect(t, r, Progress{0.25, "first"}, true)
	expect(t, r, Progress{0.25, "first"}, false)
	say(t, r, " second\n") // the rest of a line
	expect(t, r, Progress{0.5, "second"}, true)
	say(t, r, "progress=0.5 second\n")
	expect(t, r, Progress{0.5, "second"}, false) // the same again
	if err := os.Remove(r.Path); err != nil {
		t.Fatal(err)
	}
	expect(t, r, Progress{0.5, "second"}, false)
	say(t, r, "progress=0.6\n") // replaced
	expect(t, r, Progress{0.6, ""}, true)
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	r := reader(t)
	say(t, r, "colour=red\ncolour=blue\nnonsense\x1b\nprogress=150% x\nprogress=0.3\n\n")
	expect(t, r, Progress{0.3, ""}, true)
	want := []string{
		`unknown key "colour"`, `line "nonsense" is not of the form key=value`,
		`progress=150% x: want a part from 0 to 1 or a percentage, as in 0.4 or 40%, not "150%"`,
	}
	if got := r.Warnings(); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", got)
	}
	for i := range 100 {
		say(t, r, strings.Repeat("k", i+1)+"=1\n")
	}
	expect(t, r, Progress{0.3, ""}, false)
	if n := len(r.Warnings()); n != maxWarnings {
		t.Errorf("%d warnings", n)
	}
}

// Only the end of a big file is read, from the beginning of a line on.
func TestBigFile(t *testing.T) {
	t.Parallel()
	r := reader(t)
	say(t, r, "progress=0.1\n"+strings.Repeat("x", 1<<20)+"progress=0.9\nprogress=0.2\n")
	expect(t, r, Progress{0.2, ""}, true)
	if w := r.Warnings(); len(w) != 0 {
		t.Errorf("half a line was taken for one: %q", w)
	}
	say(t, r, strings.Repeat("y", maxRead))
	expect(t, r, Progress{0.2, ""}, false)
	if err := os.Truncate(r.Path, 1<<40); err != nil { // a hole
		t.Fatal(err)
	}
	expect(t, r, Progress{0.2, ""}, false)
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(path string) error{
		"link":      func(p string) error { return os.Symlink("/etc/passwd", p) },
		"fifo":      func(p string) error { return unix.Mkfifo(p, 0o666) },
		"directory": func(p string) error { return os.Mkdir(p, 0o777) },
	} {
		r := reader(t)
		if err := plant(r.Path); err != nil {
			t.Fatal(err)
		}
		if _, changed, err := r.Poll(); changed || !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), r.Path) {
			t.Errorf("%s: %v, %v", name, changed, err)
		}
		// The same if it was a plain file a moment ago.
		if _, fresh, err := r.reread(); fresh || !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, %v", name, fresh, err)
		}
	}
}

func TestSystemError(t *testing.T) {
	t.Parallel()
	r := &Reader{Path: "/dev/null/control"}
	if _, _, err := r.Poll(); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"progress=0.4 text\n", "progress=40%\n", "progress=1e-1 x\n", "progress=0x1p-2\n", "=\n", "\x00=\xff\n", "progress=NaN %\n",
		"progress=0.5 " + strings.Repeat("\u00fc", 150) + "\n", "a\nb=c\nprogress=",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := &Reader{}
		r.parse(text)
		p := r.progress
		if !(p.Part >= 0 && p.Part <= 1) || len(p.Text) > maxText || !utf8.ValidString(p.Text) ||
			strings.ContainsFunc(p.Text, unicode.IsControl) {
			t.Errorf("got %+v", p)
		}
		for _, w := range r.Warnings() {
			if strings.ContainsFunc(w, unicode.IsControl) || !utf8.ValidString(w) || len(w) > 500 {
				t.Errorf("warning %q", w)
			}
		}
	})
}

func BenchmarkPollUnchanged(b *testing.B) {
	r := reader(b)
	say(b, r, "progress=0.4 text\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := r.Poll(); err != nil {
			b.Fatal(err)
		}
	}
}

// The last line of each attribute counts, also if it is no longer in the part that is looked at.
func TestAttrs(t *testing.T) {
	t.Parallel()
	r := Reader{Path: filepath.Join(t.TempDir(), "c"), Attr: func(name, _ string) error {
		if name == "bad" {
			return errors.New("refused")
		}
		return nil
	}}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(r.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, changed, err := r.Poll(); err != nil || changed {
			t.Errorf("%v, %v", changed, err)
		}
	}
	write("attr a=1\nattr b = x=y \nattr a=2\nattr bad=1\nattr unended=1")
	first := r.Attrs()
	if !maps.Equal(first, map[string]string{"a": "2", "b": "x=y"}) {
		t.Errorf("%q", first)
	}
	if w := r.Warnings(); len(w) != 1 || w[0] != "attr bad: refused" {
		t.Errorf("%q", w)
	}
	var many strings.Builder
	for i := range 2 * mostAttrs {
		fmt.Fprintf(&many, "attr n%d=%s\n", i, strings.Repeat("x", 10))
	}
	write(many.String() + "attr a=\n")
	if got := r.Attrs(); len(got) != mostAttrs || got["a"] != "" || got["b"] != "x=y" || len(first) != 2 {
		t.Errorf("%d: %q, and before %q", len(got), got, first)
	}
}
