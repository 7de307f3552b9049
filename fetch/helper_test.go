package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mholt/archiver/v4"
	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/task"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(childMain())
	}
	goleak.VerifyTestMain(m)
}

const script = "#!/bin/sh\necho hello\n"

// entry is one entry of a test archive; the zero type is a regular file.
type entry struct {
	name, body, link string
	typ              byte
	mode             int64
}

func goodEntries() []entry {
	return []entry{
		{name: "lib/", typ: tar.TypeDir, mode: 0o755},
		{name: "lib/data.txt", body: strings.Repeat("some data\n", 300), mode: 0o644},
		{name: "run.sh", body: script, mode: 0o755},
	}
}

func tarBytes(t testing.TB, entries []entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		typ := e.typ
		if typ == 0 {
			typ = tar.TypeReg
		}
		h := &tar.Header{Name: e.name, Typeflag: typ, Mode: e.mode, Linkname: e.link, Size: int64(len(e.body))}
		noErr(t, w.WriteHeader(h))
		_, err := io.WriteString(w, e.body)
		noErr(t, err)
	}
	noErr(t, w.Close())
	return buf.Bytes()
}

func zipBytes(t testing.TB, entries []entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		mode := fs.FileMode(e.mode & 0o777)
		switch e.typ {
		case tar.TypeDir:
			mode |= fs.ModeDir
		case tar.TypeSymlink:
			mode |= fs.ModeSymlink
			e.body = e.link
		case tar.TypeFifo:
			mode |= fs.ModeNamedPipe
		case tar.TypeChar:
			mode |= fs.ModeDevice | fs.ModeCharDevice
		}
		if e.mode&0o4000 != 0 {
			mode |= fs.ModeSetuid
		}
		h.SetMode(mode)
		f, err := w.CreateHeader(h)
		noErr(t, err)
		if e.typ != tar.TypeDir {
			_, err = io.WriteString(f, e.body)
			noErr(t, err)
		}
	}
	noErr(t, w.Close())
	return buf.Bytes()
}

func compress(t testing.TB, c archiver.Compression, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := c.OpenWriter(&buf)
	noErr(t, err)
	_, err = w.Write(data)
	noErr(t, err)
	noErr(t, w.Close())
	return buf.Bytes()
}

// allFormats packs entries in every archive format, by canonical ending.
func allFormats(t testing.TB, entries []entry) map[task.SourceFormat][]byte {
	t.Helper()
	plain := tarBytes(t, entries)
	return map[task.SourceFormat][]byte{
		task.FormatTar:    plain,
		task.FormatTarGz:  compress(t, archiver.Gz{}, plain),
		task.FormatTarBz2: compress(t, archiver.Bz2{}, plain),
		task.FormatTarXz:  compress(t, archiver.Xz{}, plain),
		task.FormatTarZst: compress(t, archiver.Zstd{}, plain),
		task.FormatZip:    zipBytes(t, entries),
	}
}

// testOptions are the defaults in a fresh directory, impatient with failures.
func testOptions(t testing.TB) Options {
	o := DefaultOptions()
	o.Dir = filepath.Join(t.TempDir(), "programs")
	o.WorkDir = t.TempDir()
	o.retryDelay = time.Millisecond
	o.FailureBackoff = 0
	return o
}

func newFetcher(t testing.TB, o Options) *Fetcher {
	t.Helper()
	f, err := New(o)
	noErr(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// server serves files by path with their length and counts GETs.
type server struct {
	*httptest.Server
	gets  atomic.Int64
	mu    sync.Mutex
	files map[string][]byte
}

func newServer(t testing.TB, files map[string][]byte) *server {
	s := &server{files: files}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.gets.Add(1)
		s.mu.Lock()
		body, ok := s.files[r.URL.Path]
		s.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	}))
	t.Cleanup(s.Close)
	return s
}

func handle(t testing.TB, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

func noErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, name string, data []byte, mode fs.FileMode) string {
	t.Helper()
	noErr(t, os.MkdirAll(filepath.Dir(name), 0o755))
	noErr(t, os.WriteFile(name, data, mode))
	return name
}

// runProgram executes run.sh as a worker does: again while a process that
// another test is forking holds it open for writing.
func runProgram(t testing.TB, dir string) string {
	t.Helper()
	var out []byte
	var err error
	wait.Eventually(t, 10*time.Second, func() bool {
		cmd := exec.Command("./run.sh")
		cmd.Dir = dir
		out, err = cmd.CombinedOutput()
		return !errors.Is(err, syscall.ETXTBSY)
	}, "run.sh in %s can be executed", dir)
	noErr(t, err)
	return string(out)
}

// ensureDir is Ensure of whose version only the directory matters.
func ensureDir(f *Fetcher, ctx context.Context, program, source string, note func(string)) (string, error) { //nolint:revive // as Ensure
	v, err := f.Ensure(ctx, program, source, note)
	return v.Dir, err
}

// nothingInstalled checks that Dir holds only the fetcher's own directory with
// nothing staged, and that nothing was written beside Dir.
func nothingInstalled(t testing.TB, o Options) {
	t.Helper()
	for _, dir := range []string{o.Dir, filepath.Dir(o.Dir)} {
		entries, err := os.ReadDir(dir)
		noErr(t, err)
		if len(entries) != 1 || entries[0].Name() != ownDir && entries[0].Name() != "programs" {
			t.Fatalf("%s holds %v", dir, entries)
		}
	}
	staged, err := os.ReadDir(filepath.Join(o.Dir, stageDir))
	noErr(t, err)
	if len(staged) != 0 {
		t.Fatalf("left in staging: %v", staged)
	}
}

func wantErr(t testing.TB, err error, target error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %v", target)
	}
	if target != nil && !errors.Is(err, target) {
		t.Fatalf("error %q does not match %q", err, target)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Fatalf("error %q lacks %q", err, text)
		}
	}
}

const hash64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
