package fetch

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/task"
)

// returning is what round 1 of task 7 returns, which has written so much in each of these files.
func returning(t *testing.T, to string, sizes map[string]int64) Return {
	t.Helper()
	r := Return{
		To: to, Task: 7, Round: 1, Dir: t.TempDir(), Patterns: []string{"out"}, Scratch: t.TempDir(),
		As: func(f func() error) error { return f() },
	}
	for name, size := range sizes {
		file := write(t, filepath.Join(r.Dir, name), []byte(name), 0o755)
		noErr(t, os.Truncate(file, size))
	}
	return r
}

// below are the regular files below a directory, with their sizes, links, and directories that are empty.
func below(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	noErr(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, name)
		if rel == "." || err != nil {
			return err
		}
		info, err := d.Info()
		found[rel] = info.Size()
		if d.IsDir() {
			found[rel] = -1
		}
		delete(found, filepath.Dir(rel))
		return err
	}))
	return found
}

func wantBelow(t *testing.T, dir string, want map[string]int64) {
	t.Helper()
	if diff := cmp.Diff(want, below(t, dir)); diff != "" {
		t.Errorf("below %s (-want +got):\n%s", dir, diff)
	}
}

// deliver collects and delivers, whatever happens between.
func deliver(t *testing.T, f *Fetcher, r Return, between ...func()) (task.Files, error) {
	t.Helper()
	p, err := f.Collect(t.Context(), r)
	if err != nil {
		wantBelow(t, r.Scratch, map[string]int64{})
		return task.Files{}, err
	}
	for _, b := range between {
		b()
	}
	files, err := p.Deliver(t.Context())
	noErr(t, p.Close(t.Context()))
	wantBelow(t, r.Scratch, map[string]int64{}) // nothing stays on the way
	return files, err
}

// destinations are a directory, and a module of an rsync daemon there.
func destinations(t *testing.T) (dir string, all []string) {
	t.Helper()
	dir = t.TempDir()
	return dir, []string{"file:" + dir, "rsync://" + startDaemon(t, dir) + "/w"}
}

// Files appear at their destination with the directory of their round, and there only what was asked for. What is there is not
// replaced, and what an earlier round of the task has left half goes.
func TestDeliver(t *testing.T) {
	t.Parallel()
	dir, all := destinations(t)
	f := newFetcher(t, testOptions(t))
	sizes := map[string]int64{"out/a": 3, "out/deep/b": 70000, "out/empty": 0, "other": 1}
	for _, to := range all {
		r := returning(t, to, sizes)
		r.Patterns = append(r.Patterns, "absent")
		noErr(t, os.Symlink("/etc/passwd", filepath.Join(r.Dir, "out", "link")))
		noErr(t, os.Chmod(filepath.Join(r.Dir, "out", "a"), 0o600))
		want := map[string]int64{"7.1/out/a": 3, "7.1/out/deep/b": 70000, "7.1/out/empty": 0}
		files, err := deliver(t, f, r, func() {
			for name := range below(t, dir) {
				if !strings.HasPrefix(name, draft("7.1/")) {
					t.Errorf("%s is there before it is delivered", name)
				}
			}
		})
		noErr(t, err)
		if diff := cmp.Diff(task.Files{Count: 3, Bytes: 70003}, files); diff != "" {
			t.Errorf("%s (-want +got):\n%s", to, diff)
		}
		wantBelow(t, dir, want)
		for name, mode := range map[string]fs.FileMode{"a": 0o644, "empty": 0o755} {
			if info, err := os.Stat(filepath.Join(dir, "7.1", "out", name)); err != nil || info.Mode() != mode {
				t.Errorf("%s: %s of %v, %v", to, name, info.Mode(), err)
			}
		}
		_, err = deliver(t, f, returning(t, to, map[string]int64{"out/other": 1}))
		wantErr(t, err, ErrUndelivered, "destination "+to+": 7.1 is there already", "name another directory")
		wantBelow(t, dir, want)
		noErr(t, os.RemoveAll(filepath.Join(dir, "7.1")))
	}
	lefts := []string{filepath.Join(dir, draft("7.0")), filepath.Join(dir, draft("7.0.logs"))}
	for _, left := range lefts {
		write(t, filepath.Join(left, "half"), nil, 0o600)
	}
	r := returning(t, all[0], sizes)
	_, err := deliver(t, f, r)
	noErr(t, err)
	for _, left := range lefts {
		if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", left, err)
		}
	}
}

// What a program wrote has a place beside the files of its round, and is left half by nobody either.
func TestDeliverStreams(t *testing.T) {
	t.Parallel()
	dir, all := destinations(t)
	f := newFetcher(t, testOptions(t))
	for _, to := range all {
		r := returning(t, to, map[string]int64{"out/output": 3})
		_, err := deliver(t, f, r)
		noErr(t, err)
		output, err := os.OpenFile(filepath.Join(t.TempDir(), "unlinked"), os.O_CREATE|os.O_RDWR, 0o600)
		noErr(t, err)
		defer func() { _ = output.Close() }()
		_, err = output.WriteString("wrote")
		noErr(t, err)
		r.Dir, r.Streams = "", map[string]*os.File{"output": output}
		p, err := f.Collect(t.Context(), r)
		noErr(t, err)
		if p.at == nil {
			noErr(t, p.note())
			noErr(t, os.MkdirAll(filepath.Join(dir, "7.1.logs", ".~tmp~"), 0o755))
		}
		noErr(t, f.Abandon(t.Context(), r.Scratch, r.As)) // as after a kill
		wantBelow(t, dir, map[string]int64{"7.1/out/output": 3})
		noErr(t, p.Close(t.Context()))
		files, err := deliver(t, f, r)
		noErr(t, err)
		if files != (task.Files{Bytes: 5, Count: 1}) {
			t.Errorf("%+v", files)
		}
		want := map[string]int64{"7.1/out/output": 3, "7.1.logs/output": 5}
		wantBelow(t, dir, want)
		_, err = deliver(t, f, r)
		wantErr(t, err, ErrUndelivered, "7.1.logs is there already")
		wantBelow(t, dir, want)
		noErr(t, os.RemoveAll(filepath.Join(dir, "7.1")))
		noErr(t, os.RemoveAll(filepath.Join(dir, "7.1.logs")))
	}
}

// What cannot be delivered leaves nothing at the destination, and says where and why.
func TestDeliverRefuses(t *testing.T) {
	t.Parallel()
	dir, all := destinations(t)
	daemon := strings.TrimSuffix(all[1], "/w")
	o := testOptions(t)
	o.MaxFileBytes, o.MaxBytes, o.MaxEntries = 1000, 1500, 4
	f := newFetcher(t, o)
	noErr(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	small := map[string]int64{"out/a": 1}
	for _, c := range []struct {
		to     string
		sizes  map[string]int64
		target error
		text   string
	}{
		{all[0] + "/none", small, ErrUndelivered, "destination file:" + dir + "/none: open " + dir + "/none: no such file or directory; make the directory"},
		{all[0] + "/file", small, ErrUndelivered, "not a directory"},
		{all[0], map[string]int64{"out/a": 1001}, ErrLimit, "a file is larger than 1000 bytes in 'out/a'; return less, or raise [worker] fetch_max_file_bytes"},
		{all[1], map[string]int64{"out/a": 1 << 40}, ErrLimit, "return less, or raise [worker] fetch_max_file_bytes"},
		{all[0], map[string]int64{"out/a": 900, "out/b": 900}, ErrLimit, "raise [worker] fetch_max_bytes"},
		{all[1], map[string]int64{"out/a": 1, "out/b": 1, "out/c": 1, "out/d": 1, "out/e": 1}, ErrLimit, "raise [worker] fetch_max_entries"},
		{all[0], map[string]int64{"out/a": 1, "out/b\nc": 1}, errArchive, "control character"},
		{daemon + "/m", small, ErrUndelivered, "read only"},
		{daemon + "/none", small, ErrUndelivered, "Unknown module"},
		{daemon + "/w/none", small, ErrUndelivered, "No such file"},
		{daemon + "/locked", small, ErrUndelivered, "auth"},
	} {
		_, err := deliver(t, f, returning(t, c.to, c.sizes))
		wantErr(t, err, c.target, c.text)
		wantBelow(t, dir, map[string]int64{"file": 0})
	}
}

// Nobody leads what is delivered elsewhere, or makes it replace something.
func TestDeliverFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir, all := destinations(t)
	f := newFetcher(t, testOptions(t))
	other := t.TempDir()
	for _, name := range []string{"7.1", draft("7.1")} {
		noErr(t, os.Symlink(other, filepath.Join(dir, name)))
		for _, to := range all {
			_, err := deliver(t, f, returning(t, to, map[string]int64{"out/a": 1}))
			if name == "7.1" {
				wantErr(t, err, ErrUndelivered, "is there already")
			} else {
				noErr(t, err)
				noErr(t, os.RemoveAll(filepath.Join(dir, "7.1")))
			}
			wantBelow(t, other, map[string]int64{})
		}
		noErr(t, os.RemoveAll(filepath.Join(dir, name)))
	}
	// And in the moment before they get their name.
	_, err := deliver(t, f, returning(t, all[0], map[string]int64{"out/a": 1}), func() {
		noErr(t, os.Symlink(other, filepath.Join(dir, "7.1")))
	})
	wantErr(t, err, ErrUndelivered, "is there already")
	wantBelow(t, other, map[string]int64{})
}

// A transfer that breaks off leaves nothing, however far it came.
func TestDeliverBreaksOff(t *testing.T) {
	t.Parallel()
	dir, all := destinations(t)
	sizes := map[string]int64{"out/a": 1, "out/b": 1 << 20}
	for name, body := range map[string]string{
		"at the end":    `rsync "$@" || exit; case "$*" in *--delay-updates*) exit 12;; esac`,
		"in the middle": `case "$*" in *--delay-updates*) mkdir -p ` + dir + `/7.1/.~tmp~/out; echo > ` + dir + `/7.1/.~tmp~/out/a; exit 12;; esac; exec rsync "$@"`,
	} {
		o := testOptions(t)
		o.RsyncPath, _ = fakeRsync(t, body)
		write(t, filepath.Join(dir, "7.10", "stays"), nil, 0o600)
		_, err := deliver(t, newFetcher(t, o), returning(t, all[1], sizes))
		wantErr(t, err, ErrUndelivered, "exit status 12")
		if diff := cmp.Diff(map[string]int64{"7.10/stays": 0}, below(t, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	noErr(t, os.RemoveAll(filepath.Join(dir, "7.10")))
	f := newFetcher(t, testOptions(t))
	p, err := f.Collect(t.Context(), returning(t, all[0], sizes))
	noErr(t, err)
	hosttest.WithoutSync(t, func() { _, err = p.Deliver(t.Context()) })
	wantErr(t, err, ErrUndelivered, "sync")
	noErr(t, p.Close(t.Context()))
	wantBelow(t, dir, map[string]int64{})
	for _, to := range all {
		p, err := f.Collect(t.Context(), returning(t, to, sizes))
		noErr(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = p.Deliver(ctx)
		wantErr(t, err, context.Canceled)
		noErr(t, p.Close(t.Context()))
		_, err = f.Collect(ctx, returning(t, to, sizes))
		wantErr(t, err, context.Canceled)
		wantBelow(t, dir, map[string]int64{})
	}
}

// What a killed process has left on its way is found by what it has left in its scratch directory.
func TestAbandon(t *testing.T) {
	t.Parallel()
	dir, all := destinations(t)
	f := newFetcher(t, testOptions(t))
	for _, to := range all {
		r := returning(t, to, map[string]int64{"out/a": 1})
		p, err := f.Collect(t.Context(), r)
		noErr(t, err)
		if p.at == nil {
			noErr(t, p.note())
			noErr(t, os.MkdirAll(filepath.Join(dir, "7.1", ".~tmp~"), 0o755))
		}
		if len(below(t, dir)) != 1 || len(below(t, r.Scratch)) == 0 {
			t.Errorf("%s: %v and %v", to, below(t, dir), below(t, r.Scratch))
		}
		noErr(t, f.Abandon(t.Context(), r.Scratch, r.As))
		wantBelow(t, dir, map[string]int64{})
		wantBelow(t, r.Scratch, map[string]int64{})
		noErr(t, p.Close(t.Context()))
	}
	scratch := filepath.Join(t.TempDir(), "a[b]*") // no pattern
	for name, text := range map[string]string{"1.0": "", "1.1": "file:/none/of/these", "1.2": "nonsense"} {
		write(t, filepath.Join(scratch, stagePrefix+name, stagedTo), []byte(text), 0o600)
	}
	noErr(t, f.Abandon(t.Context(), scratch, func(f func() error) error { return f() }))
	wantBelow(t, scratch, map[string]int64{})
}

// What was there before a transfer began is not what it has left.
func TestAbandonWhatNeverBegan(t *testing.T) {
	t.Parallel()
	dir, all := destinations(t)
	f := newFetcher(t, testOptions(t))
	r := returning(t, all[1], map[string]int64{"out/a": 1})
	p, err := f.Collect(t.Context(), r)
	noErr(t, err)
	write(t, filepath.Join(dir, "7.1", "old"), nil, 0o600)
	noErr(t, f.Abandon(t.Context(), r.Scratch, r.As))
	wantBelow(t, dir, map[string]int64{"7.1/old": 0})
	wantBelow(t, r.Scratch, map[string]int64{})
	noErr(t, p.Close(t.Context()))
}

// A host that is away is waited for once, however much was on its way there.
func TestAbandonAtOnce(t *testing.T) {
	t.Parallel()
	o, begun, met := testOptions(t), t.TempDir(), t.TempDir()
	o.RsyncPath, _ = fakeRsync(t, `echo >`+begun+`/$$; until [ $(ls `+begun+` | wc -l) = 2 ]; do sleep 0.01; done; echo >`+met+`/$$; exit 23`)
	scratch := t.TempDir()
	for _, name := range []string{"1.0", "2.0"} {
		write(t, filepath.Join(scratch, stagePrefix+name, stagedTo), []byte("rsync:host:dir"), 0o600)
	}
	noErr(t, newFetcher(t, o).Abandon(t.Context(), scratch, func(f func() error) error { return f() }))
	if n := len(below(t, met)); n != 2 {
		t.Errorf("%d of 2 were asked at once", n)
	}
	wantBelow(t, scratch, map[string]int64{})
}

// Where somebody else fills a directory of that name, what he has written is not what is delivered, and stays his.
func TestDeliverBesideAnother(t *testing.T) {
	t.Parallel()
	dir, all := destinations(t)
	f := newFetcher(t, testOptions(t))
	_, err := deliver(t, f, returning(t, all[0], map[string]int64{"out/a": 1}), func() {
		noErr(t, os.RemoveAll(filepath.Join(dir, draft("7.1"))))
		write(t, filepath.Join(dir, draft("7.1"), "half"), nil, 0o600)
	})
	wantErr(t, err, ErrUndelivered, draft("7.1")+" has been removed or replaced", "name another directory")
	wantBelow(t, dir, map[string]int64{draft("7.1/half"): 0})
}

// A destination that is full says so, and nothing half stays there.
func TestDeliverToAFullDisk(t *testing.T) {
	t.Parallel()
	small := hosttest.SmallDisk(t, "1m")
	f := newFetcher(t, testOptions(t))
	_, err := deliver(t, f, returning(t, small, map[string]int64{"out/a": 1000, "out/b": 2 << 20}))
	wantErr(t, err, ErrUndelivered, "no space left on device", "make room there")
	wantBelow(t, small, map[string]int64{})
	_, err = deliver(t, f, returning(t, small, map[string]int64{"out/a": 1 << 40}))
	wantErr(t, err, ErrLimit) // before it is read
	_, err = deliver(t, f, returning(t, small, map[string]int64{"out/a": 1000}))
	noErr(t, err)
	r := returning(t, "rsync:host:dir", map[string]int64{"out/a": 2 << 20})
	r.Scratch = small
	noErr(t, os.RemoveAll(filepath.Join(small, "7.1")))
	_, err = deliver(t, f, r)
	wantErr(t, err, ErrUndelivered, "directory "+small, "make room there")
}

// Rsync gets what it gets for sources, and nothing that could be taken for an option.
func TestDeliverArguments(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	var record string
	o.RsyncPath, record = fakeRsync(t, `case "$*" in *--list-only*) exit 23;; esac`)
	o.SSHExtra = []string{"-i", "/key"}
	_, err := deliver(t, newFetcher(t, o), returning(t, "rsync:me@host:dir/", map[string]int64{"out/a": 1}))
	noErr(t, err)
	text, err := os.ReadFile(filepath.Join(record, "args"))
	noErr(t, err)
	args := strings.Split(strings.TrimSpace(string(text)), "\n")
	if tail := args[len(args)-3:]; !slices.Equal(tail, []string{"--", "files/", "me@host:dir/7.1/"}) {
		t.Errorf("ends in %q", tail)
	}
	want := map[string]bool{
		"--recursive": true, "--perms": true, "--delay-updates": true, "--protect-args": true, "--timeout=30": true,
		"--rsh=ssh -i /key " + strings.Join(sshOptions, " "): true,
	}
	for _, arg := range args {
		delete(want, arg)
	}
	if len(want) > 0 {
		t.Errorf("%v are missing in %q", slices.Collect(maps.Keys(want)), args)
	}
}
