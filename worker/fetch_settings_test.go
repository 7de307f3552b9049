package worker

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	sm "github.com/tdf-go/tdf/statemachine"
)

// gets fetches program p the way a worker with these settings of [worker] does, and
// returns where it lies.
func gets(t *testing.T, source string, settings ...string) (dir string, err error) {
	t.Helper()
	given := []string{"worker.program_dir=" + t.TempDir()}
	for _, s := range settings {
		given = append(given, "worker."+s)
	}
	all := complete(Options{Name: "w"}, storetest.Config(t, given...).Worker)
	f, err := fetch.New(all.fetching())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	v, err := f.Ensure(t.Context(), "p", source, nil)
	return v.Dir, err
}

func mustGet(t *testing.T, source string, settings ...string) (dir string) {
	t.Helper()
	dir, err := gets(t, source, settings...)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

const runsTrue = "#!/bin/sh\ntrue\n"

// program writes a file for others to run or to read.
func programFile(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// tarball is an archive of a program and a further file.
func tarball(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range map[string]string{"run.sh": runsTrue, "data": strings.Repeat("x", 3000)} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return "rsync:" + programFile(t, "p.tar", b.String())
}

// What [worker] limits a fetch to ends one that needs more.
func TestFetchLimits(t *testing.T) {
	t.Parallel()
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hangs.Close)
	for name, c := range map[string]struct {
		value, source string
		want          error
	}{
		"fetch_max_bytes":      {"2000", tarball(t), fetch.ErrLimit},
		"fetch_max_file_bytes": {"2000", tarball(t), fetch.ErrLimit},
		"fetch_max_entries":    {"1", tarball(t), fetch.ErrLimit},
		"require_pinned":       {"true", tarball(t), fetch.ErrUnpinned},
		"fetch_timeout":        {"1", hangs.URL + "/run.sh", fetch.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := gets(t, c.source, name+"="+c.value)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), name) && name != "require_pinned" {
				t.Errorf("%v, want %v", err, c.want)
			}
			if errors.Is(c.want, fetch.ErrLimit) {
				mustGet(t, c.source)
			}
		})
	}
}

// A download follows as many redirects as it may, and no more.
func TestFetchRedirects(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/run.sh" {
			http.Redirect(w, r, "/run.sh", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(runsTrue))
	}))
	t.Cleanup(srv.Close)
	mustGet(t, srv.URL+"/moved/run.sh", "fetch_max_redirects=1")
	if _, err := gets(t, srv.URL+"/moved/run.sh", "fetch_max_redirects=0"); err == nil || !strings.Contains(err.Error(), "fetch_max_redirects") {
		t.Errorf("a redirect was followed: %v", err)
	}
}

// Logins and certificates for downloads are those of the files that [worker] names.
func TestFetchLogins(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "canary" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(runsTrue))
	}))
	t.Cleanup(srv.Close)
	ca := programFile(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
	netrc := filepath.Join(t.TempDir(), "netrc")
	if err := os.WriteFile(netrc, []byte("machine 127.0.0.1 login me password canary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustGet(t, srv.URL+"/run.sh", "ca_file="+ca, "netrc_file="+netrc)
	if _, err := gets(t, srv.URL+"/run.sh", "netrc_file="+netrc); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without ca_file: %v", err)
	}
	if _, err := gets(t, srv.URL+"/run.sh", "ca_file="+ca); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without netrc_file: %v", err)
	}
}

// Another rsync and words for ssh are what a remote path is fetched with.
func TestFetchByRsync(t *testing.T) {
	t.Parallel()
	said := filepath.Join(t.TempDir(), "said")
	rsync := programFile(t, "rsync", fmt.Sprintf(`#!/bin/sh
printf '%%s\n' "$@" > %s
for dst do :; done
mkdir -p "$dst"
printf '#!/bin/sh\n' > "$dst/run.sh"
`, said))
	dir := mustGet(t, "rsync:me@host:dir/run.sh", "rsync_path="+rsync, "ssh_options=-p 2222")
	if _, err := os.Stat(filepath.Join(dir, "run.sh")); err != nil {
		t.Error(err)
	}
	if text := awaitFile(t, said); !strings.Contains(text, "--rsh=ssh -p 2222 ") {
		t.Errorf("rsync was given\n%s", text)
	}
}

// A source without a pin is looked at again after that time.
func TestRevalidate(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(runsTrue))
	}))
	defer srv.Close()
	for setting, want := range map[string]int32{"revalidate=3600": 1, "revalidate=1": 2} {
		dir, before := t.TempDir(), asked.Load()
		for range 2 {
			mustGet(t, srv.URL+"/run.sh", "program_dir="+dir, setting)
			aged, err := filepath.Glob(filepath.Join(dir, ".tdf", "seen", "*"))
			if err != nil || len(aged) != 1 {
				t.Fatal(aged, err)
			}
			then := time.Now().Add(-2 * time.Second)
			if err := os.Chtimes(aged[0], then, then); err != nil {
				t.Fatal(err)
			}
		}
		if got := asked.Load() - before; got != want {
			t.Errorf("%s: asked %d times, want %d", setting, got, want)
		}
	}
}

// Programs lie where [worker] program_dir says.
func TestProgramDir(t *testing.T) {
	t.Chdir(t.TempDir()) // the default is below it
	here := t.TempDir()
	if dir := mustGet(t, tarball(t), "program_dir="+here); filepath.Dir(dir) != filepath.Join(here, "p") {
		t.Errorf("the program is in %s, want below %s", dir, here)
	}
}

// With room for one version, each slot keeps what it runs, others make room, and no round fails for it.
func TestProgramCache(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	all := complete(Options{Name: "w"}, storetest.Config(t, "worker.program_cache=1", "worker.program_dir="+s.programs).Worker)
	programs, err := fetch.New(all.fetching())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = programs.Close() })
	s.start(t, func(o *options) { o.Programs, o.Slots = programs, 2 })
	started, release := twoFiles(t)
	long := s.open(t, s.script(t, "long", waiting), input(started+" "+release))
	awaitFile(t, started)
	var others []int64
	for range 10 {
		for _, name := range []string{"a", "b", "c"} {
			others = append(others, s.open(t, s.script(t, name, "cat run.sh # "+name)))
		}
	}
	for _, id := range others {
		checkFields(t, s.await(t, id, sm.Executed), map[string]string{"0:error": "", "round": "0"})
	}
	left, err := filepath.Glob(filepath.Join(s.programs, "*", strings.Repeat("?", 64)))
	if kept, _ := filepath.Glob(filepath.Join(s.programs, "long", "*")); err != nil || len(left) > 3 || len(kept) != 1 {
		t.Errorf("while one runs there are %q, %v", left, err)
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	checkFields(t, s.await(t, long, sm.Executed), map[string]string{"0:error": ""})
}
