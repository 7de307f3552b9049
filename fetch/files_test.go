package fetch

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

func TestReach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		whole, part   bool
	}{
		{".", ".", true, true},
		{".", "a/b", true, true},
		{"a", ".", false, true},
		{"a", "a", true, true},
		{"a", "a/b", true, true},
		{"a", "ab", false, false},
		{"a/*.c", "a", false, true},
		{"a/*.c", "a/x.c", true, true},
		{"a/*.c", "a/x.c/y", true, true},
		{"a/*.c", "b", false, false},
		{"a/*.c", "a/b/x.c", false, false},
		{"**/x", "x", true, true},
		{"**/x", "a/b/x", true, true},
		{"**/x", "a/b", false, true},
		{"a/**/x", "a/x", true, true},
		{"a/**/x", "b/x", false, false},
		{"a/**", "a", true, true},
		{"a/**", "a/b/c", true, true},
		{"**", "a/b", true, true},
		{"**/b/*/d", "a/b/c/d", true, true},
		{"**/b/*/d", "b/b/c/d", true, true},
		{"[ab]/?", "b/x", true, true},
		{"**/**", ".", true, true},
		{strings.Repeat("**/a/", 40) + "b", strings.Repeat("a/", 60) + "c", false, true},
	} {
		if whole, part := reach(parts(c.pattern), parts(c.name)); whole != c.whole || part != c.part {
			t.Errorf("%s and %s: %v, %v", c.pattern, c.name, whole, part)
		}
	}
}

// unpackedFiles are the files of an archive that PackFiles has made.
func unpackedFiles(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	got := map[string]string{}
	noErr(t, UnpackFiles(t.Context(), bytes.NewReader(packed), func(name string, mode fs.FileMode, size int64, content io.Reader) error {
		text, err := io.ReadAll(content)
		if got[name] = string(text) + " " + mode.String(); size != int64(len(text)) {
			t.Errorf("%s: %d bytes, said are %d", name, len(text), size)
		}
		return err
	}))
	return got
}

// Files are packed the same wherever they are; what the base has is left out, and so is what is no file. What no pattern
// reaches is not looked at.
func TestPackFiles(t *testing.T) {
	t.Parallel()
	var first []byte
	for range 2 {
		dir, base := someFiles(t), someFiles(t)
		noErr(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
		write(t, filepath.Join(dir, ours("x")), []byte("ours"), 0o600)
		write(t, filepath.Join(dir, "data", ours("y")), []byte("theirs\n"), 0o600)
		write(t, filepath.Join(dir, "data", "c"), []byte("d"), 0o644)
		write(t, filepath.Join(base, "data", ours("y")), []byte("their \n"), 0o644)
		var b bytes.Buffer
		n, missing, err := PackFiles(t.Context(), &b, dir, base, []string{".", "data/*", "run.sh", "fifo", "none"})
		noErr(t, err)
		want := map[string]string{"data/" + ours("y"): "theirs\n -rw-r--r--", "data/c": "d -rw-r--r--"}
		if diff := cmp.Diff(want, unpackedFiles(t, b.Bytes())); diff != "" || n != 2 {
			t.Errorf("%d files (-want +got):\n%s", n, diff)
		}
		if diff := cmp.Diff([]string{"run.sh", "fifo", "none"}, missing); diff != "" {
			t.Errorf("missing (-want +got):\n%s", diff)
		}
		if first == nil {
			first = b.Bytes()
		} else if !bytes.Equal(first, b.Bytes()) {
			t.Error("the same files make other bytes")
		}
	}
}

// ours is the name of a file that would be TDF's own at the top.
func ours(name string) string { return ".tdf-" + name }

func TestPackFilesRefuses(t *testing.T) {
	t.Parallel()
	dir := someFiles(t)
	noErr(t, os.Truncate(write(t, filepath.Join(dir, "large"), nil, 0o644), DefaultOptions().MaxFileBytes+1))
	_, _, err := PackFiles(t.Context(), io.Discard, dir, "", []string{"large"})
	wantErr(t, err, ErrLimit, "'large'", "return less")
	write(t, filepath.Join(dir, "bad", "a\nb"), nil, 0o644)
	_, _, err = PackFiles(t.Context(), io.Discard, dir, "", []string{"bad"})
	wantErr(t, err, nil, "control character")
	_, _, err = PackFiles(t.Context(), io.Discard, filepath.Join(dir, "gone"), "", []string{"."})
	wantErr(t, err, fs.ErrNotExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = PackFiles(ctx, io.Discard, dir, "", []string{"run.sh"})
	wantErr(t, err, context.Canceled)
}

// What a hostile worker may have put in the place of files is refused, and nothing of it is written elsewhere.
func TestUnpackFilesRefuses(t *testing.T) {
	t.Parallel()
	for name, entries := range map[string][]tar.Header{
		"a link":        {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}},
		"a hard link":   {{Name: "a"}, {Name: "l", Typeflag: tar.TypeLink, Linkname: "a"}},
		"a directory":   {{Name: "d/", Typeflag: tar.TypeDir}},
		"above":         {{Name: "../x"}},
		"absolute":      {{Name: "/x"}},
		"not its name":  {{Name: "a/../b"}},
		"twice":         {{Name: "a"}, {Name: "a"}},
		"setuid":        {{Name: "a", Mode: 0o4755}},
		"a device":      {{Name: "a", Typeflag: tar.TypeChar}},
		"ours":          {{Name: ".tdf-x"}},
		"control codes": {{Name: "a\x1b"}},
		"below a file":  {{Name: "a"}, {Name: "a/b"}},
		"above a file":  {{Name: "a/b"}, {Name: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			z, err := zstd.NewWriter(&b)
			noErr(t, err)
			w := tar.NewWriter(z)
			for i := range entries {
				noErr(t, w.WriteHeader(&entries[i]))
			}
			noErr(t, errors.Join(w.Close(), z.Close()))
			count := 0
			err = UnpackFiles(t.Context(), &b, func(string, fs.FileMode, int64, io.Reader) error { count++; return nil })
			wantErr(t, err, errArchive)
			if count >= len(entries) {
				t.Error("the entry was given")
			}
		})
	}
	err := UnpackFiles(t.Context(), bytes.NewReader(holes(t)), func(_ string, _ fs.FileMode, size int64, _ io.Reader) error {
		t.Errorf("a file of %d bytes was given", size)
		return nil
	})
	wantErr(t, err, errArchive, "is no file that a round returns")
	whole := packed(t, filepath.Join(someFiles(t), "run.sh"))
	err = UnpackFiles(t.Context(), bytes.NewReader(whole[:len(whole)/2]), func(_ string, _ fs.FileMode, _ int64, r io.Reader) error {
		_, err := io.ReadAll(r)
		return err
	})
	wantErr(t, err, errArchive)
	wrong := &fs.PathError{Op: "write", Path: "x", Err: errors.New("wrong")}
	err = UnpackFiles(t.Context(), bytes.NewReader(whole), func(string, fs.FileMode, int64, io.Reader) error { return wrong })
	if !errors.Is(err, wrong) || strings.Contains(err.Error(), "damaged") {
		t.Errorf("error %v, want that of who writes the files", err)
	}
}

// holes is an archive of a few bytes with a file that is nearly all hole, which our own writer does not make.
func holes(t *testing.T) []byte {
	t.Helper()
	records := ""
	for _, r := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=b", "GNU.sparse.realsize=9999999999"} {
		records += fmt.Sprintf("%d %s\n", len(r)+4, r) // each has two digits
	}
	var plain, packed bytes.Buffer
	w := tar.NewWriter(&plain)
	for _, text := range []string{records, "1\n9999999998\n1\n" + strings.Repeat("\x00", 498)} {
		noErr(t, w.WriteHeader(&tar.Header{Name: "a", Mode: 0o644, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		noErr(t, err)
	}
	noErr(t, w.Close())
	head := plain.Bytes()[:512]
	head[156] = tar.TypeXHeader
	copy(head[148:156], "        ")
	sum := 0
	for _, b := range head {
		sum += int(b)
	}
	copy(head[148:156], fmt.Sprintf("%06o\x00 ", sum))
	z, err := zstd.NewWriter(&packed)
	noErr(t, err)
	_, err = z.Write(plain.Bytes())
	noErr(t, errors.Join(err, z.Close()))
	return packed.Bytes()
}
