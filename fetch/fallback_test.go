package fetch

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tdf-go/tdf/task"
)

// What is pinned and not where it was any more is read from Redis, and nothing else is.
func TestPinnedIsGone(t *testing.T) {
	t.Parallel()
	was, is := tarBytes(t, goodEntries()), []byte("another")
	site := newServer(t, map[string][]byte{"/changed.tar": is})
	host := site.URL
	broken := handle(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9999")
		_, _ = w.Write(was[:100])
	})
	for name, c := range map[string]struct {
		source string
		kept   map[string][]byte
		ends   bool
		err    error // nil for any
		says   string
		gone   bool // the source itself says so
	}{
		"missing":              {host + "/p.tar", map[string][]byte{sum(was): was}, false, nil, "404", false},
		"changed":              {host + "/changed.tar", map[string][]byte{sum(was): was}, false, nil, "checksum mismatch", false},
		"broken off":           {broken.URL + "/p.tar", map[string][]byte{sum(was): was}, false, nil, "unexpected EOF", false},
		"local":                {"rsync:" + filepath.Join(t.TempDir(), "p.tar"), map[string][]byte{sum(was): was}, false, nil, "no such file", false},
		"missing, not kept":    {host + "/p.tar", nil, true, nil, "redis does not keep sha256 " + sum(was), true},
		"changed, not kept":    {host + "/changed.tar", nil, true, ErrChecksum, "redis does not keep sha256 " + sum(was), true},
		"local, not kept":      {"rsync:" + filepath.Join(t.TempDir(), "p.tar"), nil, true, nil, "redis does not keep sha256 " + sum(was), true},
		"broken off, not kept": {broken.URL + "/p.tar", nil, true, nil, "redis does not keep sha256 " + sum(was), false},
		"an upload, not kept":  {"blob:", nil, true, nil, "", true},
		"kept is another":      {host + "/p.tar", map[string][]byte{sum(was): is}, true, ErrChecksum, "what redis keeps", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := keeper(t, c.kept)
			var lines strings.Builder
			v, err := f.Ensure(t.Context(), "p", pinned(c.source, sum(was)), func(line string) { lines.WriteString(line + "\n") })
			switch {
			case !c.ends && (err != nil || v.SHA256 != sum(was) || !strings.Contains(lines.String(), "so it was read from redis") ||
				!strings.Contains(lines.String(), c.says)):
				t.Errorf("%+v, error %v, the log:\n%s", v, err, &lines)
			case !c.ends:
				runProgram(t, v.Dir)
			default:
				wantErr(t, err, c.err, c.says)
				if gone := errors.Is(err, task.ErrNoBlob); gone != c.gone {
					t.Errorf("gone for good: %v, want %v: %v", gone, c.gone, err)
				}
				nothingInstalled(t, f.opts)
			}
		})
	}
}

func pinned(source, hash string) string {
	if source == "blob:" {
		return task.BlobSource(hash)
	}
	return source + task.Pin(hash)
}

// Who pins a source may keep what it held.
func TestPinKeeps(t *testing.T) {
	t.Parallel()
	content := tarBytes(t, goodEntries())
	site := newServer(t, map[string][]byte{"/p.tar": content})
	kept := map[string][]byte{}
	f := keeper(t, nil)
	source, err := f.Pin(t.Context(), site.URL+"/p.tar", func(hash string, size int64, file io.ReaderAt) {
		all, err := io.ReadAll(io.NewSectionReader(file, 0, size))
		noErr(t, err)
		kept[hash] = all
	})
	if err != nil || source != site.URL+"/p.tar"+task.Pin(sum(content)) || !bytes.Equal(kept[sum(content)], content) {
		t.Errorf("%s, error %v, kept %d", source, err, len(kept))
	}
	nothingInstalled(t, f.opts)
}

// A source that has not changed is pinned again without a download; one that has is not taken for what it was.
func TestPinRemembers(t *testing.T) {
	t.Parallel()
	first, second := tarBytes(t, goodEntries()), append(tarBytes(t, goodEntries()), make([]byte, 1024)...)
	file := filepath.Join(t.TempDir(), "p.tar")
	var downloads atomic.Int32
	site := handle(t, func(w http.ResponseWriter, r *http.Request) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		tag := `"` + sum(content) + `"`
		if w.Header().Set("ETag", tag); r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		downloads.Add(1)
		_, _ = w.Write(content)
	})
	f := keeper(t, nil)
	is := func(source string, content []byte) {
		t.Helper()
		if got, err := f.Pin(t.Context(), source, nil); err != nil || got != source+task.Pin(sum(content)) {
			t.Errorf("%s is pinned as %s, error %v", source, got, err)
		}
	}
	for i, content := range [][]byte{first, second} {
		noErr(t, os.WriteFile(file, content, 0o600))
		for range 3 {
			is(site.URL+"/p.tar", content)
			is("rsync:"+file, content)
		}
		if n := downloads.Load(); int(n) != i+1 {
			t.Errorf("version %d: downloaded %d times", i+1, n)
		}
	}
	kept := 0
	for range 2 {
		_, err := f.Pin(t.Context(), site.URL+"/p.tar", func(string, int64, io.ReaderAt) { kept++ })
		noErr(t, err)
	}
	if kept != 2 {
		t.Errorf("who keeps it has got it %d times", kept)
	}
}
