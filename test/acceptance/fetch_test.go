package acceptance

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mholt/archiver/v4"

	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// entry is a file of an archive.
type entry struct {
	name, body, link string
	mode             int64
}

func tarOf(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.body)), Typeflag: tar.TypeReg}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zipOf(t *testing.T, e entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := zip.NewWriter(&buf)
	h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
	h.SetMode(os.FileMode(e.mode))
	f, err := zw.CreateHeader(h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, e.body); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func packed(t *testing.T, c archiver.Compression, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	cw, err := c.OpenWriter(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cw.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := cw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// shelf are files that are both served over http, with their GETs counted, and
// in the directory dir. None of them is executable.
type shelf struct {
	dir, url string
	mu       sync.Mutex
	gets     map[string]int
}

func newShelf(t *testing.T, w *world, files map[string][]byte) *shelf {
	t.Helper()
	s := &shelf{dir: w.own(t, "shelf"), gets: map[string]int{}}
	for name, data := range files {
		w.file(t, filepath.Join("shelf", name), string(data), 0o644)
	}
	root := http.FileServer(http.Dir(s.dir))
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.gets[strings.TrimPrefix(r.URL.Path, "/")]++
		s.mu.Unlock()
		root.ServeHTTP(rw, r)
	}))
	t.Cleanup(site.Close)
	s.url = site.URL
	return s
}

func (s *shelf) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets[name]
}

// kinds is a program in every form TDF fetches, by file name.
func kinds(t *testing.T) map[string][]byte {
	t.Helper()
	run := entry{name: "run.sh", body: "#!/bin/sh\ncat data 2>/dev/null || echo bare\n", mode: 0o755}
	plain := tarOf(t, entry{name: "data", body: "from the archive\n", mode: 0o644}, run)
	bz2 := packed(t, archiver.Bz2{}, plain)
	return map[string][]byte{
		"run.sh": []byte(run.body), "x.zip": zipOf(t, run), "x.tar": plain,
		"x.tar.gz": packed(t, archiver.Gz{}, plain), "x.tgz": packed(t, archiver.Gz{}, plain),
		"x.tar.bz": bz2, "x.tar.bz2": bz2,
		"x.tar.xz": packed(t, archiver.Xz{}, plain), "x.tar.zst": packed(t, archiver.Zstd{}, plain),
	}
}

// A29 to A31, A35: every kind of source over http, as an absolute and as a
// relative path; the second task of a program fetches nothing.
func TestSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := kinds(t)
	s := newShelf(t, w, files)
	w.server(t)
	worker := w.worker(t, "w")
	type job struct{ program, source, file string }
	var jobs []job
	for file := range files {
		short := strings.ReplaceAll(file, ".", "-")
		jobs = append(jobs,
			job{"http-" + short, s.url + "/" + file, file},
			job{"absolute-" + short, "rsync:" + filepath.Join(s.dir, file), file},
			job{"relative-" + short, "rsync:../shelf/" + file, file})
	}
	specs := make([]task.Spec, len(jobs))
	for i, j := range jobs {
		specs[i] = task.Spec{Program: j.program, Source: j.source}
	}
	for pass := range 2 {
		for i, id := range w.open(t, specs...) {
			j := jobs[i]
			task := w.await(t, id, sm.Succeeded)
			want := "from the archive\n"
			if j.file == "run.sh" || j.file == "x.zip" {
				want = "bare\n"
			}
			checkFields(t, task, map[string]string{"0:output": want, "0:error": ""})
			fetched := []string{"attempting to fetch program '" + j.program + "' from '" + j.source + "'", "fetched program '" + j.program + "'"}
			if pass == 0 {
				contains(t, "log of "+j.program, task.Fields["log"], fetched...)
			} else if strings.Contains(task.Fields["log"], "fetch") {
				t.Errorf("%s was fetched again:\n%s", j.program, task.Fields["log"])
			}
			if info, err := os.Stat(filepath.Join(w.dir, "w", j.program, task.Fields["0:program_sha256"], "run.sh")); err != nil || info.Mode()&0o111 == 0 {
				t.Errorf("%s: run.sh is not executable: %v, %v", j.program, info, err)
			}
		}
	}
	for file := range files {
		if n := s.count(file); n != 1 {
			t.Errorf("%s was asked for %d times", file, n)
		}
	}
	if worker.Ended() {
		t.Error("the worker has ended")
	}
}

// A32 to A34, A39: what cannot be fetched is the round's error, nothing is
// written anywhere else, and the worker goes on.
func TestBadSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ok := entry{name: "run.sh", body: "#!/bin/sh\n", mode: 0o755}
	s := newShelf(t, w, map[string][]byte{
		"none.tar":  tarOf(t, entry{name: "sub/run.sh", body: ok.body, mode: 0o755}),
		"plain.tar": tarOf(t, entry{name: "run.sh", body: ok.body, mode: 0o644}),
		"up.tar":    tarOf(t, ok, entry{name: "../evil", body: "evil", mode: 0o644}),
		"root.tar":  tarOf(t, ok, entry{name: filepath.Join(w.dir, "evil"), body: "evil", mode: 0o644}),
		"link.tar":  tarOf(t, ok, entry{name: "evil", link: "../../tdf.cfg", mode: 0o777}),
		"cut.zip":   zipOf(t, ok)[:40],
	})
	w.server(t)
	w.worker(t, "w")
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"ending":  {"rsync:x.wrongExtension", []string{"invalid type of archive / program", "x.wrongExtension"}},
		"404":     {s.url + "/missing.zip", []string{"404"}},
		"missing": {"rsync:this/path/does/not/exist/blafasel.zip", []string{"no such file"}},
		"none":    {s.url + "/none.tar", []string{"run.sh"}},
		"plain":   {s.url + "/plain.tar", []string{"run.sh", "executable"}},
		"up":      {s.url + "/up.tar", []string{"../evil"}},
		"root":    {s.url + "/root.tar", []string{filepath.Join(w.dir, "evil")}},
		"link":    {s.url + "/link.tar", []string{"evil"}},
		"cut":     {s.url + "/cut.zip", nil},
		"scheme":  {"gopher://host/x.zip", []string{"gopher"}},
		"sum":     {s.url + "/none.tar#sha256=" + strings.Repeat("0", 64), []string{"sha256"}},
	} {
		t.Run(name, func(t *testing.T) {
			id := w.open(t, task.Spec{Program: "bad-" + name, Source: c.source})[0]
			task := w.await(t, id, sm.Failed)
			contains(t, "error", task.Fields["0:error"], append(c.want, "could not fetch program 'bad-"+name+"' at worker 'w'")...)
			contains(t, "log", task.Fields["log"], "could not fetch program 'bad-"+name+"'")
			checkFields(t, task, map[string]string{"fails": "1", "round": "0", "0:exit_code": "-", "0:output": ""})
		})
	}
	w.await(t, w.open(t, w.script(t, "good", "true"))[0], sm.Succeeded)
	checkNothingEscaped(t, w)
}

func checkNothingEscaped(t *testing.T, w *world) {
	t.Helper()
	err := filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "evil" {
			t.Errorf("%s has been written", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, "w", "bad-*")); err != nil || len(left) > 0 {
		t.Errorf("installed: %v, %v", left, err)
	}
}

// A39: a task whose program is no name of a directory is refused when it is
// opened, and fails if a stranger has written it.
func TestBadProgramNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	good := w.script(t, "good", "true")
	var ids []int64
	for _, name := range []string{"../x", "/abs", "a/../../b", "", ".."} {
		_, stderr, code := run(t, w.dir, program(t, "tdf-manager"), "--config", w.cfg,
			"submit", "--program", name, "--source", good.Source)
		if code != 2 || !strings.Contains(stderr, "program") {
			t.Errorf("submit of %q ended with %d: %s", name, code, stderr)
		}
		id := w.open(t, good)[0]
		if err := w.Raw.HSet(t.Context(), w.Key("task:"+id2text(id)), "program", name).Err(); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	w.worker(t, "w")
	for _, id := range ids {
		contains(t, "error", w.await(t, id, sm.Failed).Fields["0:error"], "invalid program name")
	}
	w.await(t, w.open(t, good)[0], sm.Succeeded)
}
