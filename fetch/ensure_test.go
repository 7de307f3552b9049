package fetch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/task"
)

// otherEndings are the endings besides the canonical ones.
var otherEndings = map[string]task.SourceFormat{".tgz": task.FormatTarGz, ".tar.bz": task.FormatTarBz2}

// A29, A31, A35: every ending over http and as a local path.
func TestEnsureAllFormats(t *testing.T) {
	t.Parallel()
	archives := allFormats(t, goodEntries())
	files := map[string][]byte{}
	for format, data := range archives {
		files["/p"+string(format)] = data
	}
	for ending, format := range otherEndings {
		files["/p"+ending] = archives[format]
	}
	srv := newServer(t, files)
	for name, data := range files {
		t.Run(name[1:], func(t *testing.T) {
			t.Parallel()
			o := testOptions(t)
			abs := write(t, filepath.Join(o.WorkDir, "sub", name), data, 0o600)
			f := newFetcher(t, o)
			for program, source := range map[string]string{
				"web": srv.URL + name, "abs": "rsync:" + abs, "rel": "rsync:sub" + name,
			} {
				var lines []string
				dir, err := ensureDir(f, t.Context(), program, source, func(l string) { lines = append(lines, l) })
				noErr(t, err)
				if dir != filepath.Join(o.Dir, program, sum(data)) || runProgram(t, dir) != "hello\n" {
					t.Fatalf("wrong program in %s", dir)
				}
				checkTree(t, dir)
				checkLines(t, lines, program, source)
				again, err := ensureDir(f, t.Context(), program, source, func(l string) { t.Errorf("fetched again: %s", l) })
				if err != nil || again != dir {
					t.Fatalf("second: %s, %v", again, err)
				}
			}
		})
	}
	t.Cleanup(func() {
		if n := srv.gets.Load(); n != int64(len(files)) {
			t.Errorf("%d GETs for %d programs", n, len(files))
		}
	})
}

func checkTree(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "lib/data.txt"))
	noErr(t, err)
	if len(data) != 3000 {
		t.Fatalf("%d bytes", len(data))
	}
	for name, mode := range map[string]os.FileMode{"run.sh": 0o755, "lib/data.txt": 0o644} {
		fi, err := os.Stat(filepath.Join(dir, name))
		noErr(t, err)
		if fi.Mode() != mode {
			t.Errorf("%s has mode %v", name, fi.Mode())
		}
	}
}

func checkLines(t *testing.T, lines []string, program, source string) {
	t.Helper()
	file := filepath.Base(source)
	second := fmt.Sprintf("downloading %s from %s", file, source)
	if rest, ok := strings.CutPrefix(source, "rsync:"); ok {
		second = fmt.Sprintf("rsyncing %s from %s", file, rest)
	}
	verb := "untaring"
	if strings.HasSuffix(file, ".zip") {
		verb = "unzipping"
	}
	want := []string{
		fmt.Sprintf("attempting to fetch program '%s' from '%s'", program, source), second,
		fmt.Sprintf("%s %s to ./%s/", verb, file, program), fmt.Sprintf("fetched program '%s'", program),
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

// A30: a bare run.sh, not executable where it comes from.
func TestEnsureScript(t *testing.T) {
	t.Parallel()
	srv := newServer(t, map[string][]byte{"/x/run.sh": []byte(script)})
	o := testOptions(t)
	write(t, filepath.Join(o.WorkDir, "run.sh"), []byte(script), 0o644)
	f := newFetcher(t, o)
	for program, source := range map[string]string{"web": srv.URL + "/x/run.sh", "local": "rsync:run.sh",
		"pinned": "rsync:run.sh#sha256=" + sum([]byte(script))} {
		dir, err := ensureDir(f, t.Context(), program, source, nil)
		noErr(t, err)
		if out := runProgram(t, dir); out != "hello\n" {
			t.Fatal(out)
		}
	}
}

// A32, A33, A34, A39: one error line with program, worker and cause.
func TestEnsureErrors(t *testing.T) {
	t.Parallel()
	noRun := tarBytes(t, []entry{{name: "readme", body: "x", mode: 0o644}})
	nested := tarBytes(t, []entry{{name: "p-v1/run.sh", body: script, mode: 0o755}})
	notExec := allFormats(t, []entry{{name: "run.sh", body: script, mode: 0o644}})
	dirRun := tarBytes(t, []entry{{name: "run.sh/", typ: '5', mode: 0o755}})
	srv := newServer(t, map[string][]byte{"/norun.tar": noRun, "/nested.tar": nested, "/notexec.tar": notExec[task.FormatTar],
		"/notexec.zip": notExec[task.FormatZip], "/dir.tar": dirRun, "/empty.tar": {}, "/empty.zip": {}, "/html.tar.gz": []byte("<html>")})
	for _, c := range []struct {
		program, source string
		target          error
		text            string
	}{
		{"p", "rsync:x.wrongExtension", task.ErrInvalidFormat, "invalid type of archive / program: rsync:x.wrongExtension"},
		{"p", srv.URL + "/none.zip", nil, "HTTP status 404"},
		{"p", "rsync:this/path/does/not/exist/blafasel.zip", os.ErrNotExist, "no such file"},
		{"p", srv.URL + "/norun.tar", ErrNotRunnable, "program './p/run.sh' does not exist"},
		{"p", srv.URL + "/nested.tar", ErrNotRunnable, "there is 'p-v1/run.sh'"},
		{"p", srv.URL + "/notexec.tar", ErrNotRunnable, "program './p/run.sh' is not executable (mode 0644)"},
		{"p", srv.URL + "/notexec.zip", ErrNotRunnable, "program './p/run.sh' is not executable (mode 0644)"},
		{"p", srv.URL + "/dir.tar", ErrNotRunnable, "is not a regular file"},
		{"p", srv.URL + "/empty.tar", errArchive, "truncated"},
		{"p", srv.URL + "/empty.zip", errArchive, "truncated"},
		{"p", srv.URL + "/html.tar.gz", errArchive, "of another type"},
		{"../x", srv.URL + "/norun.tar", task.ErrInvalidProgram, "'../x'"},
		{"/abs", srv.URL + "/norun.tar", task.ErrInvalidProgram, "'/abs'"},
		{"a/../../b", srv.URL + "/norun.tar", task.ErrInvalidProgram, ""},
		{"", srv.URL + "/norun.tar", task.ErrInvalidProgram, ""},
		{"p", "", task.ErrInvalidSource, "names no source"},
		{"p", "rsync:.", task.ErrInvalidFormat, ""},
		{"p", "http://me:canary@h/p.zip", task.ErrInvalidSource, "netrc"},
	} {
		o := testOptions(t)
		o.Worker = "w1"
		f := newFetcher(t, o)
		var log []string
		dir, err := ensureDir(f, t.Context(), c.program, c.source, func(l string) { log = append(log, l) })
		wantErr(t, err, c.target, fmt.Sprintf("could not fetch program '%s' at worker 'w1': ", c.program), c.text)
		var typed *Error
		if !errors.As(err, &typed) || typed.Program != c.program || dir != "" {
			t.Errorf("%v, dir %q", err, dir)
		}
		if strings.Contains(err.Error()+strings.Join(log, ""), "canary") || strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("unfit for a log: %q %q", err, log)
		}
		nothingInstalled(t, o)
	}
}

// A pin means one version, and no other ever runs.
func TestEnsurePin(t *testing.T) {
	t.Parallel()
	data := tarBytes(t, goodEntries())
	srv := newServer(t, map[string][]byte{"/p.tar": data})
	o := testOptions(t)
	o.FailureBackoff = 0
	f := newFetcher(t, o)
	wrong := srv.URL + "/p.tar#sha256=" + hash64
	_, err := f.Ensure(t.Context(), "p", wrong, nil)
	wantErr(t, err, ErrChecksum, sum(data), hash64)
	nothingInstalled(t, o)

	for _, source := range []string{srv.URL + "/p.tar#sha256=" + sum(data), "http://no.such.host/q.zip#sha256=" + strings.ToUpper(sum(data))} {
		v, err := f.Ensure(t.Context(), "p", source, nil)
		noErr(t, err)
		if v.SHA256 != sum(data) || v.Dir != filepath.Join(o.Dir, "p", sum(data)) {
			t.Errorf("%+v", v)
		}
	}
	_, err = f.Ensure(t.Context(), "p", wrong, nil)
	wantErr(t, err, ErrChecksum)
	if n := srv.gets.Load(); n != 3 {
		t.Errorf("%d GETs, want 3", n)
	}
}

func TestEnsureRequirePinned(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.RequirePinned = true
	write(t, filepath.Join(o.WorkDir, "run.sh"), []byte(script), 0o644)
	write(t, filepath.Join(o.Dir, "hand", "run.sh"), []byte(script), 0o755)
	f := newFetcher(t, o)
	_, err := f.Ensure(t.Context(), "p", "rsync:run.sh", nil)
	wantErr(t, err, ErrUnpinned, "#sha256=HEX")
	_, err = f.Ensure(t.Context(), "hand", "", nil)
	wantErr(t, err, task.ErrInvalidSource)
	_, err = f.Ensure(t.Context(), "p", "rsync:run.sh#sha256="+sum([]byte(script)), nil)
	noErr(t, err)
}

func TestEnsureHandMade(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	f := newFetcher(t, o)
	write(t, filepath.Join(o.Dir, "good", "run.sh"), []byte(script), 0o755)
	write(t, filepath.Join(o.Dir, "plain", "run.sh"), []byte(script), 0o644)
	write(t, filepath.Join(o.Dir, "other", "notes.txt"), nil, 0o644)
	write(t, filepath.Join(o.Dir, "file"), nil, 0o644)
	noErr(t, os.Mkdir(filepath.Join(o.Dir, "empty"), 0o755))
	write(t, filepath.Join(o.WorkDir, "run.sh"), []byte(script), 0o644)

	for _, source := range []string{"rsync:nowhere/run.sh", ""} {
		dir, err := ensureDir(f, t.Context(), "good", source, nil)
		noErr(t, err)
		runProgram(t, dir)
	}
	_, err := f.Ensure(t.Context(), "good", "rsync:run.sh#sha256="+hash64, nil)
	wantErr(t, err, ErrChecksum)
	v, err := f.Ensure(t.Context(), "good", "rsync:run.sh#sha256="+sum([]byte(script)), nil)
	noErr(t, err)
	if v.Dir != filepath.Join(o.Dir, "good", sum([]byte(script))) {
		t.Errorf("%+v, want a version beside what was put there by hand", v)
	}
	_, err = f.Ensure(t.Context(), "plain", "rsync:run.sh", nil)
	wantErr(t, err, ErrNotRunnable, "not executable", "complete or remove it")
	_, err = f.Ensure(t.Context(), "other", "rsync:run.sh", nil)
	noErr(t, err)
	if _, err := os.Stat(filepath.Join(o.Dir, "other", "notes.txt")); err != nil {
		t.Error(err)
	}
	_, err = f.Ensure(t.Context(), "file", "rsync:run.sh", nil)
	wantErr(t, err, nil, "not a directory")
	_, err = f.Ensure(t.Context(), "empty", "rsync:run.sh", nil)
	noErr(t, err)
}

// A version that somebody has damaged is installed again; what others have put beside versions stays.
func TestEnsureReplacesBrokenVersions(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	f := newFetcher(t, o)
	write(t, filepath.Join(o.WorkDir, "run.sh"), []byte(script), 0o644)
	dir, err := ensureDir(f, t.Context(), "p", "rsync:run.sh", nil)
	noErr(t, err)
	precious := write(t, filepath.Join(o.Dir, "p", "result.txt"), []byte("precious"), 0o644)
	for _, damage := range []func() error{
		func() error { return os.Remove(filepath.Join(dir, "run.sh")) },
		func() error { return os.Remove(filepath.Join(dir, manifestFile)) },
		func() error { return os.WriteFile(filepath.Join(dir, manifestFile), []byte("{"), 0o644) },
	} {
		noErr(t, damage())
		again, err := ensureDir(f, t.Context(), "p", "rsync:run.sh", nil)
		noErr(t, err)
		runProgram(t, again)
		if ok := f.installed("p", sum([]byte(script))); again != dir || !ok {
			t.Errorf("%s, %v, want a whole version in %s", again, ok, dir)
		}
	}
	if data, err := os.ReadFile(precious); err != nil || string(data) != "precious" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestManifestOfCopiedDirectory(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	f := newFetcher(t, o)
	write(t, filepath.Join(o.WorkDir, "run.sh"), []byte(script), 0o644)
	dir, err := ensureDir(f, t.Context(), "p", "rsync:run.sh", nil)
	noErr(t, err)
	m, found, err := readManifest(dir, "p")
	noErr(t, err)
	if !found || m.Source != "rsync:run.sh" || m.SHA256 != sum([]byte(script)) || m.Bytes != int64(len(script)) ||
		time.Since(m.Fetched) > time.Hour {
		t.Errorf("%+v", m)
	}
	noErr(t, os.CopyFS(filepath.Join(o.Dir, "copy"), os.DirFS(dir)))
	_, err = f.Ensure(t.Context(), "copy", "rsync:elsewhere/run.sh", nil)
	noErr(t, err)
}
