package fetch

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
)

// noise is content that no compression makes small.
func noise(n int) string {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	return string(data)
}

// A disk that is full at any step fails that fetch with the reason, leaves
// nothing, and once there is room the same fetch works.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	fits := tarBytes(t, goodEntries())
	for name, c := range map[string]struct {
		body   []byte
		filler int64 // bytes that are on the disk of 3 MiB already
	}{
		"download":  {tarBytes(t, []entry{{name: "run.sh", body: script, mode: 0o755}, {name: "x", body: noise(mib), mode: 0o644}}), 5 * mib / 2},
		"unpack":    {tarBytes(t, []entry{{name: "run.sh", body: script, mode: 0o755}, {name: "x", body: noise(mib), mode: 0o644}}), 3 * mib / 2},
		"lock file": {fits, 3 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			small := hosttest.SmallDisk(t, "3m")
			srv := newServer(t, map[string][]byte{"/p.tar": c.body})
			o := testOptions(t)
			o.Dir = filepath.Join(small, "programs")
			o.FailureBackoff = 1 << 62 // a full disk is not remembered
			f := newFetcher(t, o)
			filler := filepath.Join(small, "filler")
			if c.filler == 3*mib {
				filler = hosttest.FillDisk(t, small)
			} else {
				noErr(t, os.WriteFile(filler, make([]byte, c.filler), 0o600))
			}
			_, err := f.Ensure(t.Context(), "p", srv.URL+"/p.tar", nil)
			wantFull(t, err, o.Dir)
			nothingLeft(t, o.Dir)
			noErr(t, os.Remove(filler))
			dir, err := ensureDir(f, t.Context(), "p", srv.URL+"/p.tar", nil)
			noErr(t, err)
			if _, err := os.Stat(filepath.Join(dir, "run.sh")); err != nil {
				t.Error(err)
			}
		})
	}
}

func wantFull(t *testing.T, err error, dir string) {
	t.Helper()
	wantErr(t, err, syscall.ENOSPC, "the disk of '"+dir+"' is full", "make room")
	var full *diskFullError
	if !errors.As(err, &full) || full.dir != dir {
		t.Errorf("%#v, want a diskFullError", err)
	}
}

func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	for below, want := range map[string]int{".": 1, stageDir: 0} {
		if files, err := os.ReadDir(filepath.Join(dir, below)); err != nil || len(files) != want {
			t.Errorf("%s holds %v, %v", below, files, err)
		}
	}
}

// What the system says at each step that writes durably is passed on.
func TestFullDiskWhileInstalling(t *testing.T) {
	t.Parallel()
	small := hosttest.SmallDisk(t, "3m")
	srv := newServer(t, map[string][]byte{"/p.tar": tarBytes(t, goodEntries())})
	o := testOptions(t)
	o.Dir = filepath.Join(small, "programs")
	f := newFetcher(t, o)
	var filler string
	f.at = func(step string) {
		if step == "unpacked" && filler == "" {
			filler = hosttest.FillDisk(t, small)
		}
	}
	_, err := f.Ensure(t.Context(), "p", srv.URL+"/p.tar", nil)
	wantFull(t, err, o.Dir)
	nothingLeft(t, o.Dir)
	noErr(t, os.Remove(filler))
	_, err = f.Ensure(t.Context(), "p", srv.URL+"/p.tar", nil)
	noErr(t, err)
}

func TestFullDiskOfRsync(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.RsyncPath, _ = fakeRsync(t, `echo 'rsync: [receiver] write failed on "/p/x": No space left on device (28)' >&2; exit 11`)
	_, err := newFetcher(t, o).Ensure(t.Context(), "p", "rsync:host:run.sh", nil)
	wantFull(t, err, o.Dir)
	nothingInstalled(t, o)
}

// A quota is a full disk too; other failures are not.
func TestExplainFull(t *testing.T) {
	t.Parallel()
	f := &Fetcher{opts: Options{Dir: "/p"}}
	wantFull(t, f.explainFull(&os.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}), "/p")
	for _, err := range []error{ErrChecksum, syscall.EIO, http.ErrAbortHandler} {
		if got := f.explainFull(err); !errors.Is(got, err) || disk.Full(got) || strings.Contains(got.Error(), "full") {
			t.Errorf("%v became %v", err, got)
		}
	}
}

// Names of files come from archives, and errors are joined: still it is one line.
func TestErrorIsOneLine(t *testing.T) {
	t.Parallel()
	err := &Error{Program: "p", Err: errors.Join(&os.PathError{Op: "write", Path: "a\u202eb", Err: syscall.EIO}, errArchive)}
	const want = `could not fetch program 'p': write a\u202eb: input/output error\narchive refused`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}
