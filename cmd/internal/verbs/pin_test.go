package verbs

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/task"
)

// What submit and plan submit can read is pinned; what they cannot the first worker pins, and they say so, or refuse it if that is asked for.
func TestSubmitPins(t *testing.T) {
	t.Parallel()
	nobody := strings.Repeat("a", 64)
	b := newBench(t)
	const script = "#!/bin/sh\n"
	sum := sha256.Sum256([]byte(script))
	hash := hex.EncodeToString(sum[:])
	pin := task.Pin(hash)
	file := filepath.Join(t.TempDir(), "run.sh")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(filepath.Dir(file)))
	var asked atomic.Int32 // for the program
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/run.sh":
			asked.Add(1)
			files.ServeHTTP(w, r)
		case "/broken/run.sh":
			w.WriteHeader(http.StatusForbidden)
		case "/gone/run.sh":
			w.WriteHeader(http.StatusGone)
		default:
			files.ServeHTTP(w, r)
		}
	}))
	defer srv.Close()
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	text := "steps:\n  one:\n    program: p\n    source: " + srv.URL + "/run.sh\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must("queue", "add", "go", "class=p")
	for _, c := range []struct {
		args, want, says string
	}{
		{"submit --program p --source rsync:" + file, "rsync:" + file + pin, ""},
		{"submit --program p --source " + srv.URL + "/run.sh", srv.URL + "/run.sh" + pin, ""},
		{"submit --program p --pin require --array 1-3 --source " + srv.URL + "/run.sh", srv.URL + "/run.sh" + pin, ""},
		{"submit --program p --pin off --source " + srv.URL + "/run.sh", srv.URL + "/run.sh", ""},
		{"submit --program p --source blob:sha256=" + nobody, "blob:sha256=" + nobody, "Redis does not keep blob:sha256=" + nobody},
		{"submit --program p --source rsync:run.sh", "rsync:run.sh", "does not lie here, so each worker looks for it in its own working directory"},
		{"submit --program p --source rsync:" + relative(t, file), "rsync:" + file + pin, ""},
		{"submit --program p --source file:" + relative(t, file), "rsync:" + file + pin, ""},
		{"submit --program p --source file://" + file, "rsync:" + file + pin, ""},
		{"submit --program p --pin off --source rsync:" + relative(t, file), "rsync:" + relative(t, file), ""},
		{"submit --program p --pin off --source file:" + file, "rsync:" + file, ""},
		{"submit --program p --source " + srv.URL + "/broken/run.sh", srv.URL + "/broken/run.sh" + task.PinFirst, "so all tasks run what the first worker finds there"},
		{"submit --program p --source rsync:/no/such/run.sh", "rsync:/no/such/run.sh" + task.PinFirst, "so all tasks run what the first worker finds there"},
		{"submit --program p --pin off --source " + srv.URL + "/none/run.sh", srv.URL + "/none/run.sh", ""},
		{"submit --program p", "", "no --source says where to get program p"},
		{"submit --program p --class c", "", ""},
		{"submit --program p --queue go", "", ""},
		{"plan submit " + plan, srv.URL + "/run.sh" + pin, ""},
	} {
		r := b.run(fields(c.args)...)
		if r.code != 0 || !strings.Contains(r.err, c.says) || c.says == "" && r.err != "" {
			t.Errorf("%s: ended with %d: %s", c.args, r.code, r.err)
		}
		last, err := b.store.LastID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if one, err := b.store.Task(t.Context(), last); err != nil || one.Fields["source"] != c.want {
			t.Errorf("%s: source %q, %v, want %q", c.args, one.Fields["source"], err, c.want)
		}
	}
	if err := b.store.Blob(t.Context(), hash, io.Discard); err != nil {
		t.Errorf("what was pinned is not kept: %v", err)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("three submissions have asked for it %d times", n)
	}
	for args, says := range map[string]string{
		"submit --program p --pin require --source rsync:run.sh":                                       "a relative path means another file at each worker",
		"submit --program p --pin require --source " + srv.URL + "/none/run.sh":                        "404",
		"submit --program p --source " + srv.URL + "/none/run.sh":                                      "HTTP status 404; correct the address, or write --pin off",
		"submit --program p --source " + srv.URL + "/gone/run.sh":                                      "HTTP status 410; correct the address",
		"plan submit " + planFile(t, "steps:\n  a: {program: p, source: '"+srv.URL+"/none/run.sh'}\n"): "p.yaml:2: steps.a: field source: ",
		"submit --program p --pin yes --source rsync:run.sh":                                           "--pin \"yes\" is unknown; write auto, require or off",
	} {
		if r := b.unchanged(fields(args)...); r.code != 2 || !strings.Contains(r.err, says) {
			t.Errorf("%s: ended with %d, want 2: %s", args, r.code, r.err)
		}
	}
}

// relative is the path from the working directory.
func relative(t *testing.T, file string) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Rel(here, file)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A directory that lies here is taken along, as by --upload.
func TestDirectoryAsSource(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	hosttest.WriteProgram(t, filepath.Join(dir, "run.sh"), "#!/bin/sh\n", 0o755)
	b.must("submit", "--program", "p", "--upload", dir)
	want := b.value(0, "show", "1").(map[string]any)["source"].(string)
	plan := planFile(t, "steps:\n  a: {program: p, source: rsync:"+dir+"/}\n")
	for _, args := range []string{
		"submit --program p --source rsync:" + dir, "submit --program p --source file:" + relative(t, dir), "submit --program p --source rsync:" + relative(t, dir) + "/",
		"submit --program p --pin off --source rsync:" + dir, "submit --program p --pin require --source file://" + dir, "plan submit " + plan,
	} {
		b.must(fields(args)...)
		if got := b.value(0, "show", "last").(map[string]any)["source"]; got != want {
			t.Errorf("%s: source %v, want %s", args, got, want)
		}
	}
	if err := b.store.Blob(t.Context(), strings.TrimPrefix(want, "blob:sha256="), io.Discard); err != nil {
		t.Error(err)
	}
}

// What no worker could use is refused before anything is opened, and not by each worker for each task.
func TestSourcesAreChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("submit", "--program", "p", "--class", "c")
	empty, lines := t.TempDir(), filepath.Join(t.TempDir(), "tasks.jsonl")
	for source, says := range map[string]string{
		"ftp://host/run.sh": "use http://, https://, rsync:PATH", "/home/me/run.sh": "rsync:PATH", "run.sh": "rsync:PATH",
		"https://host/sim.git": "use one of .tar", "rsync:prog": "or a directory that lies here", "rsync:host:prog/": "use one of .tar",
		"https://me:secret@host/run.sh": "netrc", "file:no-such/run.sh": "nothing of that name lies here", "file:" + relative(t, empty) + "/x.tgz": "nothing of that name lies here",
		"rsync:" + empty: "run.sh' does not exist", "file:pin_test.go": "use one of .tar", "command:./x": "a relative path would mean another file",
		"./pk": "; for a file or directory here, write file:PATH or use --upload",
	} {
		plan := planFile(t, "steps:\n  a: {program: p, source: '"+source+"'}\n")
		if err := os.WriteFile(lines, []byte(`{"program":"p","source":"rsync:/x/run.sh"}`+"\n"+`{"program":"p","source":"`+source+`"}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range []string{
			"submit --program p --array 1-2000 --source " + source, "submit --program p --pin off --source " + source,
			"submit --program p --dry-run --source " + source, "submit --from-json " + lines, "plan submit " + plan, "plan run " + plan,
		} {
			r := b.unchanged(fields(args)...)
			if r.code != 2 || !strings.Contains(r.err, says) || strings.Contains(r.err, "secret") {
				t.Errorf("%s: ended with %d, want 2 and %q: %s", args, r.code, says, r.err)
			}
			if strings.Contains(args, "from-json") && !strings.Contains(r.err, lines+":2: ") {
				t.Errorf("%s: no line: %s", args, r.err)
			}
		}
	}
}

// Without --pin the configuration says how to pin.
func TestPinOfConfiguration(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	config, err := os.ReadFile(b.file)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pin, args string
		code      int
		pinned    bool
	}{
		{"require", "--source rsync:" + file, 0, true},
		{"require", "--source http://127.0.0.1:1/run.sh", 2, false},
		{"require", "--pin off --source http://127.0.0.1:1/run.sh", 0, false},
		{"off", "--source rsync:" + file, 0, false},
		{"off", "--pin auto --source rsync:" + file, 0, true},
	} {
		if err := os.WriteFile(b.file, append(slices.Clone(config), "pin="+c.pin+"\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		r := b.run(append([]string{"submit", "--program", "p"}, strings.Fields(c.args)...)...)
		if r.code != c.code {
			t.Errorf("pin=%s, submit %s: %+v", c.pin, c.args, r)
		}
		if source := b.must("show", "last"); r.code == 0 && strings.Contains(source, "#sha256=") != c.pinned {
			t.Errorf("pin=%s, submit %s: %s", c.pin, c.args, source)
		}
	}
}
