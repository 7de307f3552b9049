package fetch

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/task"
)

// repacked serves one file that changes, by a validator, and counts what it has sent.
type repacked struct {
	*httptest.Server

	header string // ETag, Last-Modified, or neither
	broken atomic.Bool
	hangs  atomic.Bool
	asked  atomic.Int64
	sent   atomic.Int64

	mu   sync.Mutex // a client that gives up leaves its request running
	body []byte
	tag  string
}

func newRepacked(t *testing.T, header string) *repacked {
	t.Helper()
	r := &repacked{header: header}
	r.Server = handle(t, func(w http.ResponseWriter, req *http.Request) {
		r.asked.Add(1)
		if r.hangs.Load() {
			<-req.Context().Done()
			return
		}
		if r.broken.Load() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		r.mu.Lock()
		body, tag := r.body, r.tag
		r.mu.Unlock()
		if r.header != "" {
			w.Header().Set(r.header, tag)
		}
		if known := req.Header.Get(map[string]string{"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}[r.header]); known != "" && known == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		r.sent.Add(1)
		_, _ = w.Write(body)
	})
	return r
}

func (r *repacked) pack(t *testing.T, text, tag string) (hash string) {
	t.Helper()
	body := tarBytes(t, []entry{{name: "run.sh", body: "#!/bin/sh\necho " + text + "\n", mode: 0o755}})
	r.serve(body, tag)
	return sum(body)
}

func (r *repacked) serve(body []byte, tag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.body, r.tag = body, tag
}

// wantVersion ensures p and checks which version runs.
func wantVersion(t *testing.T, f *Fetcher, source, hash, output string) (log string) {
	t.Helper()
	var said strings.Builder
	v, err := f.Ensure(t.Context(), "p", source, func(line string) { said.WriteString(line + "\n") })
	noErr(t, err)
	if out := runProgram(t, v.Dir); v.SHA256 != hash || filepath.Base(v.Dir) != hash || out != output+"\n" {
		t.Fatalf("%+v says %q, want version %s, which says %q", v, out, hash, output)
	}
	return said.String()
}

// A program repacked at the same address is a new version beside the old one, on every worker; what has not changed is not sent again,
// and what was pinned stays.
func TestRepackedProgram(t *testing.T) {
	t.Parallel()
	for header, sent := range map[string]int64{"ETag": 3, "Last-Modified": 3, "": 9} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			srv := newRepacked(t, header)
			o := testOptions(t)
			o.Revalidate = 0
			f, url := newFetcher(t, o), srv.URL+"/p.tar"
			one := srv.pack(t, "one", "Mon, 02 Jan 2006 15:04:05 GMT")
			if log := wantVersion(t, f, url, one, "one"); !strings.Contains(log, "attempting to fetch") || !strings.Contains(log, "downloading") {
				t.Errorf("the first fetch says %q", log)
			}
			for range 3 {
				if log := wantVersion(t, f, url, one, "one"); log != "" {
					t.Errorf("without a change it says %q", log)
				}
			}
			two := srv.pack(t, "two", "Mon, 02 Jan 2006 15:04:06 GMT")
			log := wantVersion(t, f, url, two, "two")
			if !strings.Contains(log, "program 'p' has changed at its source\ndownloading p.tar") || !strings.Contains(log, "fetched program 'p'") {
				t.Errorf("of a change it says %q", log)
			}
			wantVersion(t, f, url+"#sha256="+one, one, "one")
			wantVersion(t, newFetcher(t, o), url, two, "two") // after a restart
			srv.pack(t, "one", "Mon, 02 Jan 2006 15:04:05 GMT")
			if log := wantVersion(t, f, url, one, "one"); !strings.Contains(log, "has changed") || strings.Contains(log, "untaring") {
				t.Errorf("of a version that is there it says %q", log)
			}
			wantVersion(t, f, url, one, "one")
			if srv.asked.Load() != 8 || header != "" && srv.sent.Load() != sent {
				t.Errorf("asked %d times, sent %d times, want 8 and %d", srv.asked.Load(), srv.sent.Load(), sent)
			}
		})
	}
}

// While it is settled what a source holds, nobody asks it, in this process or another.
func TestSettledSource(t *testing.T) {
	t.Parallel()
	srv := newRepacked(t, "ETag")
	o := testOptions(t)
	one := srv.pack(t, "one", "1")
	f := newFetcher(t, o)
	for range 2 {
		wantVersion(t, f, srv.URL+"/p.tar", one, "one")
		wantVersion(t, newFetcher(t, o), srv.URL+"/p.tar", one, "one")
	}
	if srv.asked.Load() != 1 {
		t.Errorf("asked %d times, want once", srv.asked.Load())
	}
}

// A source that cannot be asked leaves what it held, and the log says so; one that holds something bad does not.
func TestSourceThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	srv := newRepacked(t, "ETag")
	o := testOptions(t)
	o.Revalidate = 0
	f := newFetcher(t, o)
	one := srv.pack(t, "one", "1")
	wantVersion(t, f, srv.URL+"/p.tar", one, "one")
	srv.broken.Store(true)
	if log := wantVersion(t, f, srv.URL+"/p.tar", one, "one"); !strings.Contains(log, "going on with sha256 "+one) || !strings.Contains(log, "404") {
		t.Errorf("it says %q", log)
	}
	srv.broken.Store(false)
	srv.serve([]byte("no archive"), "2")
	_, err := f.Ensure(t.Context(), "p", srv.URL+"/p.tar", nil)
	wantErr(t, err, errArchive)
	f.failures.backoff = time.Hour
	for range 2 {
		_, err = f.Ensure(t.Context(), "p", srv.URL+"/p.tar", nil)
		wantErr(t, err, errArchive)
	}
	if n := srv.sent.Load(); n != 3 { // the first version, and what is bad
		t.Errorf("sent %d times, want that what is bad is remembered", n)
	}
	f.failures = newFailures(0, time.Now, func() float64 { return 0 })
	srv.serve(make([]byte, 1000), "3")
	f.opts.MaxBytes = 999
	_, err = f.Ensure(t.Context(), "p", srv.URL+"/p.tar", nil)
	wantErr(t, err, ErrLimit)
	srv.hangs.Store(true) // last: a request that is given up may arrive later
	f.opts.Timeout = 50 * time.Millisecond
	if log := wantVersion(t, f, srv.URL+"/p.tar", one, "one"); !strings.Contains(log, "timed out") {
		t.Errorf("of a source that hangs it says %q", log)
	}
}

// A local path is looked at each time; one that is gone leaves what it held.
func TestChangedLocalPath(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.Revalidate = time.Hour
	f := newFetcher(t, o)
	for _, text := range []string{"one", "two", "six"} {
		body := []byte("#!/bin/sh\necho " + text + "\n")
		file := write(t, filepath.Join(o.WorkDir, "run.sh"), body, 0o644)
		wantVersion(t, f, "rsync:run.sh", sum(body), text)
		if log := wantVersion(t, newFetcher(t, o), "rsync:"+file, sum(body), text); strings.Contains(log, "fetched") {
			t.Errorf("what is there was fetched: %q", log)
		}
	}
	noErr(t, os.Remove(filepath.Join(o.WorkDir, "run.sh")))
	if log := wantVersion(t, f, "rsync:run.sh", sum([]byte("#!/bin/sh\necho six\n")), "six"); !strings.Contains(log, "no such file") {
		t.Errorf("it says %q", log)
	}
}

// By rsync too, what has not changed is not sent.
func TestChangedRsyncSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	body := []byte("#!/bin/sh\necho one\n")
	file := write(t, filepath.Join(dir, "run.sh"), body, 0o644)
	source := "rsync://" + startDaemon(t, dir) + "/m/run.sh"
	o := testOptions(t)
	o.Revalidate = 0
	f := newFetcher(t, o)
	wantVersion(t, f, source, sum(body), "one")
	fi, err := os.Stat(file)
	noErr(t, err)
	write(t, file, []byte("#!/bin/sh\necho xxx\n"), 0o644)
	noErr(t, os.Chtimes(file, fi.ModTime(), fi.ModTime())) // of the same size and time: not read
	wantVersion(t, f, source, sum(body), "one")
	body = []byte("#!/bin/sh\necho two\n")
	write(t, file, body, 0o644)
	noErr(t, os.Chtimes(file, fi.ModTime(), fi.ModTime().Add(time.Hour)))
	if log := wantVersion(t, f, source, sum(body), "two"); !strings.Contains(log, "has changed") {
		t.Errorf("it says %q", log)
	}
}

// What no task has named for a month is forgotten, in memory after Revalidate.
func TestSourcesAreForgotten(t *testing.T) {
	t.Parallel()
	srv := newRepacked(t, "ETag")
	srv.pack(t, "one", "1")
	o := testOptions(t)
	o.Revalidate = time.Nanosecond
	f := newFetcher(t, o)
	for _, query := range []string{"?1", "?2", "?3"} {
		_, err := f.Ensure(t.Context(), "p", srv.URL+"/p.tar"+query, nil)
		noErr(t, err)
	}
	files := func() []string {
		all, err := filepath.Glob(filepath.Join(o.Dir, seenDir, "p.*"))
		noErr(t, err)
		return all
	}
	all := files()
	if len(f.seen) != 1 || len(all) != 3 {
		t.Fatalf("%d sources in memory, %d files, want 1 and 3", len(f.seen), len(all))
	}
	old := time.Now().Add(-forgetAfter - time.Hour)
	noErr(t, os.Chtimes(all[0], old, old))
	newFetcher(t, o)
	if left := files(); len(left) != 2 {
		t.Errorf("%d files are left, want 2", len(left))
	}
}

// Programs of an older release become versions at the start.
func TestOldInstallation(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	body := []byte(script)
	file := write(t, filepath.Join(o.WorkDir, "run.sh"), body, 0o644)
	v, err := newFetcher(t, o).Ensure(t.Context(), "p", "rsync:"+file, nil)
	noErr(t, err)
	old := filepath.Join(t.TempDir(), "old") // as they had it: one directory for each program
	noErr(t, os.Rename(v.Dir, old))
	noErr(t, os.RemoveAll(o.Dir))
	noErr(t, os.Mkdir(o.Dir, 0o755))
	noErr(t, os.Rename(old, filepath.Join(o.Dir, "p")))
	hand := write(t, filepath.Join(o.Dir, "hand", runFile), body, 0o755)
	f := newFetcher(t, o)
	if got := wantVersion(t, f, "rsync:"+file+"#sha256="+sum(body), sum(body), "hello"); got != "" {
		t.Errorf("fetched again: %q", got)
	}
	noErr(t, os.Remove(file))
	wantVersion(t, f, "rsync:"+file, sum(body), "hello")
	if v, err := f.Ensure(t.Context(), "hand", "", nil); err != nil || v != (Version{Dir: filepath.Dir(hand)}) {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "p", string(task.FormatScript))); !os.IsNotExist(err) {
		t.Errorf("the old place: %v", err)
	}
}
