package fetch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// A child may say any amount; only the start is kept in memory.
func TestHeadIsBounded(t *testing.T) {
	t.Parallel()
	h := &head{limit: 10}
	n, err := io.Copy(h, strings.NewReader(strings.Repeat("0123456789", 100_000)))
	if err != nil || n != 1_000_000 || h.text.String() != "0123456789" || h.text.Cap() > 1<<12 {
		t.Errorf("copied %d (%v), kept %d", n, err, h.text.Len())
	}
}

// Links are judged by their names, before the system is asked.
func TestSymlinkTargets(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	for target, good := range map[string]bool{
		"x": true, "./x/y": true, "../x": true, "../../x": true, "../../": true, ".//.././x": true, "...": true, "..x": true,
		"../../../x": false, "../../..": false, "x/..": false, "x/../../../..": false, "./x/../y": false, "/x": false,
		"": false, "a\nb": false, strings.Repeat("x", maxPathBytes+1): false,
	} {
		tr := newTree(openRoot(t), &budget{opts: &o})
		err := tr.addSymlink("a/b/link", target)
		if (err == nil) != good || err != nil && !errors.Is(err, errArchive) {
			t.Errorf("%q: %v", target, err)
		}
	}
}

// What was judged good by names alone is resolved by the system as well.
func TestMakeLinksResolves(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	for _, target := range []string{"..", "../x", "/etc", "self"} {
		tr := newTree(openRoot(t), &budget{opts: &o})
		tr.links = []symlink{{"self", target}}
		wantErr(t, tr.makeLinks(), errArchive, "leads outside or into a circle")
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"http://a:b@h/p":         "http://***@h/p",
		"http://h/p":             "http://h/p",
		"rsync:me@h:p":           "rsync:me@h:p",
		"rsync://a:b@h/m":        "rsync://***@h/m",
		"rsync:a:b@h:p":          "rsync:***@h:p",
		"x\x1b[31m\u202ey":       `x\x1b[31m\u202ey`,
		strings.Repeat("x", 400): strings.Repeat("x", 297) + "...",
	} {
		if got := redact(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestSinkResets(t *testing.T) {
	t.Parallel()
	s, err := newSink(openRoot(t), 10)
	noErr(t, err)
	defer s.file.Close()
	for _, text := range []string{"half a fi", "whole"} {
		noErr(t, s.reset())
		_, err := io.WriteString(s, text)
		noErr(t, err)
	}
	data, err := os.ReadFile(s.file.Name())
	if err != nil || string(data) != "whole" || s.n != 5 || fmt.Sprintf("%x", s.hash.Sum(nil)) != sum(data) {
		t.Errorf("%q, %v, n %d", data, err, s.n)
	}
	_, err = io.WriteString(s, "too much")
	wantErr(t, err, ErrLimit, "larger than 10 bytes", "[worker] fetch_max_bytes")
}

// Locks are per program: one fetch does not hold up another.
func TestLocksArePerProgram(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	f, other := newFetcher(t, o), newFetcher(t, o)
	unlock, err := f.lock(t.Context(), "p")
	noErr(t, err)
	if _, err := other.tryFlock("p"); err == nil {
		t.Error("two holders of one lock")
	}
	free, err := other.lock(t.Context(), "q")
	noErr(t, err)
	free()
	unlock()
	again, err := other.lock(t.Context(), "p")
	noErr(t, err)
	again()
}
