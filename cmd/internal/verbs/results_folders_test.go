package verbs

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/worktest"
)

// tree is what lies below a directory, by path; of a link it is the target.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		case entry.Type()&os.ModeSymlink != 0:
			files[name], err = os.Readlink(path)
			return err
		}
		text, err := os.ReadFile(path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// untar is what a tar archive holds.
func untar(t *testing.T, text string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for r := tar.NewReader(strings.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if _, err := file.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = file.String()
		}
	}
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s is %q, want %q", what, name, got[name], want[name])
		}
	}
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%s: %d files, want %d", what, len(got), len(want))
	}
}

// Folders have every byte, a tar archive has the same, and is the same each time.
func TestResultsFolders(t *testing.T) {
	t.Parallel()
	b := odd(t)
	b.srv.Do(t, "HSET", b.ns+":task:1", "0:running", "999999990", "0:executed", "1000000000")
	lines := slices.Collect(strings.Lines(b.must("results", "--jsonl")))
	want := map[string]string{}
	for i, p := range oddPrograms {
		folder := fmt.Sprintf("p/%s=%d", escapeName(strings.Fields(p.input)[0]), i+1)
		want[folder+"/output"], want[folder+"/error"], want[folder+"/task.json"] = p.Output, p.Error, lines[i]
	}
	dir := filepath.Join(t.TempDir(), "new", "out")
	r := b.run("results", "--dir", dir, "--name", "p/{word1}={index}")
	if r.code != 0 || r.out != "" || r.err != "wrote 6 to "+dir+"\n" {
		t.Errorf("%+v", r)
	}
	same(t, "--dir", tree(t, dir), want)
	stream := b.must("results", "--tar", "-", "--name", "p/{word1}={id}")
	same(t, "--tar", untar(t, stream), want)
	if h, err := tar.NewReader(strings.NewReader(stream)).Next(); err != nil || h.ModTime.Unix() != 1000000000 {
		t.Errorf("%+v, %v: not of the end of the round", h, err)
	}
	file := filepath.Join(t.TempDir(), "out.tar")
	b.must("results", "--tar", file, "--name", "p/{word1}={id}")
	if text, err := os.ReadFile(file); err != nil || string(text) != stream {
		t.Errorf("the file is not the stream: %d bytes, %v, want %d", len(text), err, len(stream))
	}
}

// A name leads nowhere else, and what is there stays as it is.
func TestResultsStayBelow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, words := range []string{"../../up", "/abs", ".hidden", "..", "twice", "twice"} {
		b.must("submit", "--program", "p", "--source", "rsync:run.sh", "--end-before", "inf", "--", words)
	}
	worktest.Drain(t, b.store, worktest.Echo)
	top := t.TempDir()
	dir, outside := filepath.Join(top, "out"), filepath.Join(top, "outside")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(outside, 0o700), os.Symlink(outside, filepath.Join(dir, "link")),
		os.Symlink(outside, filepath.Join(dir, "1"))); err != nil {
		t.Fatal(err)
	}
	before := tree(t, top)
	for args, want := range map[string]string{
		"1-6 --name {word1}":      `tasks 5 and 6 the same name, "twice"`,
		"1-4 --name link/{word1}": "link",
		"1-4":                     "1, for task 1, exists",
		"1-4 --name {word2}":      "{word2}, and task 1 has none",
		"--name ../{id}":          "no path below",
	} {
		r := b.run(append([]string{"results", "--dir", dir}, fields(args)...)...)
		if r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v, want %q", args, r, want)
		}
		same(t, args, tree(t, top), before)
	}
	b.must("results", "1-5", "--dir", dir, "--name", "{word1}")
	for name, want := range map[string]string{
		"%2E.%2F..%2Fup": "../../up\n", "%2Fabs": "/abs\n", "%2Ehidden": ".hidden\n", "%2E.": "..\n", "twice": "twice\n",
	} {
		before[filepath.Join("out", name, "output")] = want
	}
	after := tree(t, top)
	for name := range after {
		if base := filepath.Base(name); base == "error" || base == "task.json" {
			delete(after, name)
		}
	}
	same(t, "beside", after, before)
}

// What ends in the middle leaves folders that are whole, and nothing else.
func TestResultsFoldersAreWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pattern, err := parseFolderName("{id}")
	if err != nil {
		t.Fatal(err)
	}
	names := &folderNames{pattern: pattern, tasks: []named{{id: 2}, {id: 1}}}
	into, err := newFolderSink(dir, names, nil)
	if err != nil {
		t.Fatal(err)
	}
	row := func(id int64) *resultRow { return &resultRow{ID: id, named: named{id: id}, output: "all of it\n"} }
	if err := into.take(row(1)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "2"), []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	failed := into.take(row(2))
	if failed == nil || into.close(failed) != nil {
		t.Error("it went on")
	}
	got := tree(t, dir)
	delete(got, filepath.Join("1", "task.json"))
	same(t, "after the failure", got, map[string]string{"1/output": "all of it\n", "1/error": "", "2": "in the way"})
}

func TestFolderName(t *testing.T) {
	t.Parallel()
	of := named{id: 7, key: "k/1", words: []string{"a b", "..", "größe", "100%", "x\xff", ""}}
	for pattern, want := range map[string]string{
		"{id}": "7", "{index}": "3", "run-{id}.d": "run-7.d", "{key}": "k%2F1", "{word1}": "a%20b", "{word2}": "%2E.", "{word3}/{id}": "größe/7",
		"{word4}": "100%25", "{word5}": "x%FF", "{word1}{word2}": "a%20b%2E.", "x": "x",
	} {
		name, err := parseFolderName(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := name.of(&of, 3); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", pattern, got, err, want)
		}
	}
	for _, pattern := range []string{
		"", ".", "..", "a/../b", "/a", "a/", "a//b", "{", "}", "{}", "{id", "id}", "{word0}", "{word01}", "{word}", "{Id}", ".x", "a/.x", "a\\b", "a\x00", "\xff",
	} {
		if name, err := parseFolderName(pattern); err == nil {
			t.Errorf("%q is taken: %v", pattern, name)
		}
	}
	long := named{id: 1, words: []string{strings.Repeat("x", 256), ""}}
	for _, pattern := range []string{"{word1}", "{word2}", "{word3}", "{key}"} {
		name, err := parseFolderName(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := name.of(&long, 1); err == nil {
			t.Errorf("%s: %q", pattern, got)
		}
	}
}

// After a flush several tasks have one id, and no index tells them apart.
func TestFolderNamesAfterFlush(t *testing.T) {
	t.Parallel()
	for pattern, unlike := range map[string]bool{"{index}": false, "{id}": false, "{word1}": true} {
		name, err := parseFolderName(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names := &folderNames{pattern: name}
		for _, word := range []string{"a", "b"} {
			names.tasks = append(names.tasks, named{id: 7, words: []string{word}})
		}
		if err := names.complete(); (err == nil) != unlike {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// Different texts have different names, which are one component each.
func FuzzEscapeName(f *testing.F) {
	f.Add("a/b", "a%2Fb")
	f.Add("\xff", "%FF")
	f.Add(".", "..")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := escapeName(a), escapeName(b)
		if (a == b) != (x == y) {
			t.Errorf("%q and %q: %q, %q", a, b, x, y)
		}
		if strings.ContainsAny(x, "/\x00\\") || strings.HasPrefix(x, ".") || !json.Valid([]byte(`"`+x+`"`)) {
			t.Errorf("%q: %q", a, x)
		}
	})
}
