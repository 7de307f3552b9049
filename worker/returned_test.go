package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// returning is a task that returns files, on other conditions than success alone if on is set.
func returning(on string, names ...string) func(*task.Definition) {
	return func(d *task.Definition) {
		text, _ := json.Marshal(names)
		storetest.Set(d, "return", string(text))
		if on != "" {
			storetest.Set(d, "return_on", on)
		}
	}
}

// returned are the files that a round has returned, with what they hold.
func returned(t *testing.T, s *site, header *tasks.TaskHeader) map[string]string {
	t.Helper()
	got := map[string]string{}
	files := task.Decode(header.ID, header.Fields).Last().Files
	if files.Count == 0 {
		return got
	}
	var packed bytes.Buffer
	if err := s.Store.Files(t.Context(), files.SHA256, &packed); err != nil || int64(packed.Len()) != files.Bytes {
		t.Fatalf("%d bytes of %+v, %v", packed.Len(), files, err)
	}
	err := fetch.UnpackFiles(t.Context(), &packed, func(name string, mode fs.FileMode, _ int64, content io.Reader) error {
		text, err := io.ReadAll(content)
		if got[name] = string(text); mode&0o111 != 0 {
			got[name] += "(executable)"
		}
		return err
	})
	if err != nil || len(got) != files.Count {
		t.Errorf("%d files of %+v, %v", len(got), files, err)
	}
	return got
}

// A round returns the files that its task names, and neither what the program came with nor what is no file,
// whichever way its directory shows the program.
func TestReturn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const work = `mkdir -p out/deep .hidden data; echo 1 > out/a.csv; echo 2 > out/deep/b.csv; echo c > out/c.txt; echo h > .hidden/h
echo x > x; chmod +x x; ln -s /etc/passwd out/l.csv; ln -s out link; mkfifo out/p.csv; echo changed >> data/d`
	program := s.script(t, "p", work)
	for _, name := range []string{"same", "d"} {
		file := filepath.Join(s.sources, "p", "data", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var packed bytes.Buffer
	if err := fetch.Pack(t.Context(), &packed, filepath.Join(s.sources, "p")); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(s.sources, "p.tar.zst")
	if err := os.WriteFile(archive, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	upload := func(d *task.Definition) { storetest.Set(d, "program", "p", "source", "rsync:"+archive) }
	inShared := func(d *task.Definition) { storetest.Set(d, "workdir", "shared") }
	s.start(t)
	whole := map[string]string{
		"out/a.csv": "1\n", "out/deep/b.csv": "2\n", "out/c.txt": "c\n", ".hidden/h": "h\n", "x": "x\n(executable)",
	}
	for _, c := range []struct {
		names string
		want  []string
	}{
		{"out/*.csv", []string{"out/a.csv"}},
		{"out", []string{"out/a.csv", "out/c.txt", "out/deep/b.csv"}},
		{"./out/deep/ x", []string{"out/deep/b.csv", "x"}},
		{"**/*.csv x", []string{"out/a.csv", "out/deep/b.csv", "x"}},
		{"out/**", []string{"out/a.csv", "out/c.txt", "out/deep/b.csv"}},
		{". out", slices.Collect(maps.Keys(whole))},
	} {
		got := s.await(t, s.open(t, program, returning("", strings.Fields(c.names)...)), sm.Executed)
		checkFields(t, got, map[string]string{"0:error": ""})
		want := maps.Clone(whole)
		maps.DeleteFunc(want, func(name, _ string) bool { return !slices.Contains(c.want, name) })
		files := returned(t, s, got)
		delete(files, "data/d") // a script alone comes without data
		if diff := cmp.Diff(want, files); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.names, diff)
		}
	}
	for name, open := range map[string]func(*task.Definition){"a copy": upload, "shared": func(d *task.Definition) { upload(d); inShared(d) }} {
		want := maps.Clone(whole)
		want["data/d"] = "0\nchanged\n"
		if diff := cmp.Diff(want, returned(t, s, s.await(t, s.open(t, open, returning("", ".")), sm.Executed))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A round that would succeed fails if a name matches no file. One that fails returns files only if its task asks for that, and
// then needs none.
func TestReturnOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(t)
	for _, c := range []struct {
		program, on string
		names       []string
		err         string
		files       int
	}{
		{"echo x > x", "", []string{"x", "y", "out/*.csv"}, "return: no file of the round matches y, out/*.csv", 0},
		{"echo x > x", "", []string{"."}, "", 1},
		{"true", "end", []string{"run.sh"}, "return: no file of the round matches run.sh", 0},
		{"echo x > x; exit 3", "", []string{"x"}, "exit status 3", 0},
		{"echo x > x; exit 3", "end", []string{"x", "y"}, "exit status 3", 1},
		{"echo x > x", "end", []string{"x", "y"}, "return: no file of the round matches y", 1},
		{"exit 3", "end", []string{"x"}, "exit status 3", 0},
		{"echo x > x; echo bad >&2", "success", []string{"x"}, "bad", 0},
		{"echo x > x; exit 3", "end", []string{"x", "large"}, "exit status 3", 1},
		{"echo x > x; kill -9 $$", "end", []string{"x"}, "killed by signal", 1},
		{"head -c 10 /dev/zero > zero; chmod u+s zero", "", []string{"zero"}, "setuid", 0},
		{"truncate -s 600M large", "", []string{"large"}, "a file is larger than 536870912 bytes", 0},
	} {
		got := s.await(t, s.open(t, s.script(t, "p", c.program), returning(c.on, c.names...)), sm.Executed)
		if text := got.Fields["0:error"]; (text == "") != (c.err == "") || !strings.Contains(text, c.err) {
			t.Errorf("%s: error %q, want %q", c.program, text, c.err)
		}
		if c.err != "" {
			checkFields(t, got, map[string]string{"0:class": "program"})
		}
		lost := strings.Contains(c.err, "setuid") || strings.Contains(c.err, "larger") // and not what nobody has written
		checkFields(t, got, map[string]string{"cut": map[bool]string{true: "0 files", false: "-"}[lost]})
		if n := len(returned(t, s, got)); n != c.files {
			t.Errorf("%s: %d files, want %d", c.program, n, c.files)
		}
	}
}

// keepingBackend is a site whose keeping of files is another's.
type keepingBackend struct {
	*store.Store

	put func(context.Context) error
}

// PutFiles implements Backend.
func (k keepingBackend) PutFiles(ctx context.Context, hash string, size int64, content io.ReaderAt, asked bool) error {
	if err := k.put(ctx); err != nil {
		return err
	}
	return k.Store.PutFiles(ctx, hash, size, content, asked)
}

// Where the files cannot be kept, the round fails through no fault of its program, and says what to do.
func TestReturnWithoutRoom(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.Store.PublishBlobs(t.Context(), 100, 1000, time.Hour); err != nil {
		t.Fatal(err)
	}
	id := s.open(t, s.script(t, "p", "head -c 1000 /dev/urandom > x"), returning("", "x"))
	bad := s.open(t, s.script(t, "bad", "head -c 1000 /dev/urandom > x; exit 3"), returning("end", "x"))
	s.start(t)
	got := s.await(t, bad, sm.Executed)
	checkFields(t, got, map[string]string{"0:class": "program", "0:error": "exit status 3", "0:files": "-"}) // its own failure counts
	checkContains(t, "log", got.Fields["log"], "could not return files")
	checkFields(t, got, map[string]string{"cut": "0 files"})
	got = s.await(t, id, sm.Executed)
	checkFields(t, got, map[string]string{"0:class": "infrastructure", "cut": "0 files", "0:files": "-", "0:exit_code": "0"})
	checkContains(t, "error", got.Fields["0:error"], "could not return files", "the limit of one blob is 100 bytes",
		"return less, or raise [server] blob_limit")
}

// A round waits with its files for Redis to come back, and counts as one that runs.
func TestReturnWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t, s.script(t, "p", "echo x > x"), returning("", "x"))
	var tries atomic.Int32
	r := s.start(t, func(o *options) {
		o.Backend = keepingBackend{s.Dial(t), func(context.Context) error {
			if tries.Add(1) < 3 {
				return task.ErrUnreachable
			}
			return nil
		}}
	})
	got := s.await(t, id, sm.Executed)
	checkFields(t, got, map[string]string{"0:error": ""})
	if diff := cmp.Diff(map[string]string{"x": "x\n"}, returned(t, s, got)); diff != "" || tries.Load() != 3 {
		t.Errorf("%d tries (-want +got):\n%s", tries.Load(), diff)
	}
	r.log.await(t, "lost the connection to redis")
}

// Nobody has asked for output beyond the record: a round does not wait for Redis to take that.
func TestWholeOutputIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t, s.script(t, "p", "head -c 2000 /dev/zero"))
	var tries atomic.Int32
	s.start(t, setting(t, "output_limit=1KiB"), func(o *options) {
		o.Backend = keepingBackend{s.Dial(t), func(context.Context) error {
			tries.Add(1)
			return task.ErrUnreachable
		}}
	})
	got := s.await(t, id, sm.Executed)
	checkFields(t, got, map[string]string{"0:error": "", "0:whole": "-", "0:output_bytes": "2000"})
	checkContains(t, "log", got.Fields["log"], "not all of output is kept: ")
	if tries.Load() != 1 {
		t.Errorf("%d tries, want 1", tries.Load())
	}
}

// What stops a round stops it too while it returns files: it is no success then, and its files are not told of.
func TestReturnIsStopped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open  func(*task.Definition)
		stop  func(t *testing.T, s *site, r *running, id int64)
		state sm.State
		round int
	}{
		"timeout": {func(d *task.Definition) { storetest.Set(d, "timeout", "5") }, nil, sm.TimedOut, 0},
		"cancel": {func(*task.Definition) {}, func(t *testing.T, s *site, _ *running, id int64) {
			t.Helper()
			s.askStop(t, id)
		}, sm.Terminated, 0},
		"drain": {func(*task.Definition) {}, func(t *testing.T, _ *site, r *running, _ int64) {
			t.Helper()
			r.stop(t)
		}, sm.Open, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			id := s.open(t, s.script(t, "p", "echo x > x"), returning("", "x"), c.open)
			begun := make(chan struct{})
			r := s.start(t, func(o *options) {
				o.Backend = keepingBackend{s.Dial(t), func(ctx context.Context) error {
					close(begun)
					<-ctx.Done()
					return errors.New("no answer")
				}}
			})
			wait.Closed(t, patience, begun, "nothing is returned")
			if c.stop != nil {
				c.stop(t, s, r, id)
			}
			got := s.settle(t, id, c.state)
			if got.Round != c.round || got.Fields["0:files"] != "" {
				t.Errorf("round %d, files %q", got.Round, got.Fields["0:files"])
			}
		})
	}
}

// What only a foreign client can have written ends the round before the program runs, and a handler has no files.
func TestReturnIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	bad := s.open(t, s.script(t, "p", "echo ran"))
	handled := s.open(t, func(d *task.Definition) { storetest.Set(d, "program", "h") }, returning("", "x"))
	to := s.open(t, s.script(t, "p", "echo ran"), returning("", "x"))
	for key, set := range map[string][]any{"task:1": {"return", `["../x"]`}, "task:3": {"return_to", "rsync://me:canary@host/m"}} {
		if err := s.Raw.HSet(t.Context(), s.Key(key), set...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s.start(t, func(o *options) {
		o.Handlers = map[string]Handler{"h": func(context.Context, *Job) error { return nil }}
	})
	for id, want := range map[int64]string{
		bad: "field return", handled: "a Go handler has no directory", to: `field return_to: "rsync://***@host/m" is not a destination: the port`,
	} {
		got := s.await(t, id, sm.Executed)
		checkFields(t, got, map[string]string{"0:output": "", "0:class": "program"})
		checkContains(t, "error", got.Fields["0:error"], want)
	}
}

// streamSizes are the sizes of the streams that Redis keeps in a blob.
func (s *site) streamSizes(t *testing.T, whole task.Files) map[string]int {
	t.Helper()
	var packed bytes.Buffer
	if err := s.Store.Files(t.Context(), whole.SHA256, &packed); err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	err := fetch.UnpackFiles(t.Context(), &packed, func(name string, _ fs.FileMode, _ int64, content io.Reader) error {
		n, err := io.Copy(io.Discard, content)
		sizes[name] = int(n)
		return err
	})
	if err != nil || len(sizes) != whole.Count {
		t.Error(sizes, err)
	}
	return sizes
}

// Each stream is a blob of its own, so that two of them may each be as large as one may be, and one that is too large takes nothing
// from the other.
func TestOutputIsABlobEach(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.Store.PublishBlobs(t.Context(), 4000, 1<<20, time.Hour); err != nil {
		t.Fatal(err)
	}
	s.start(t, setting(t, "output_limit=1KiB", "output_max=10KiB"))
	for program, want := range map[string]map[string]int{
		"head -c 3000 /dev/urandom; head -c 3001 /dev/urandom >&2": {"output": 3000, "error": 3001},
		"head -c 9000 /dev/urandom; head -c 3000 /dev/urandom >&2": {"error": 3000},
		"head -c 3000 /dev/urandom; head -c 9000 /dev/urandom >&2": {"output": 3000},
	} {
		got := s.await(t, s.open(t, s.script(t, "p", program)), sm.Executed)
		kept := map[string]int{}
		for _, whole := range task.Decode(got.ID, got.Fields).Last().Whole {
			maps.Copy(kept, s.streamSizes(t, whole))
		}
		if !maps.Equal(kept, want) {
			t.Errorf("%s: kept are %v, want %v", program, kept, want)
		}
		for name, cut := range map[string]string{"output": "0 error", "error": "0 output"} {
			if len(want) == 1 && want[name] > 0 {
				checkFields(t, got, map[string]string{"cut": cut})
				checkContains(t, "log", got.Fields["log"], "not all of "+strings.TrimPrefix(cut, "0 ")+" is kept: ", "raise [server] blob_limit")
			}
		}
	}
}

// Of a stream that is longer than its record takes, all is kept beside it, whatever becomes of the round, or of a still longer one the
// beginning and the tail; nothing of what finds no room. on_cut concerns only what is kept nowhere, and the job
// remembers that something is, so that nobody has to look for it in all of its tasks.
func TestOutputMax(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.Store.PublishBlobs(t.Context(), 1<<20, 2000, time.Hour); err != nil {
		t.Fatal(err)
	}
	s.start(t, setting(t, "output_limit=1KiB", "output_max=10KiB"))
	strict := func(d *task.Definition) { storetest.Set(d, "on_cut", "fail", "fail_on", "exit") }
	for _, c := range []struct {
		program string
		whole   map[string]int // bytes of the streams
		err     string
		cut     string
	}{
		{"head -c 1024 /dev/zero", nil, "", "-"},
		{"head -c 1025 /dev/zero", map[string]int{"output": 1025}, "", "-"},
		{"head -c 10240 /dev/zero; head -c 5000 /dev/zero >&2", map[string]int{"output": 10240, "error": 5000}, "", "-"},
		{"for i in 1 2 3 4 5; do head -c 1000 /dev/zero; sleep 0.02; done", map[string]int{"output": 5000}, "", "-"},
		{"head -c 2000 /dev/zero; exit 3", map[string]int{"output": 2000}, "exit status 3", "-"},
		{"head -c 10752 /dev/zero", map[string]int{"output": 10752}, "", "-"}, // with the tail of the excerpt
		{"head -c 10753 /dev/zero", map[string]int{"output.cut": 10752 + len(capture.Marker(1))}, "on_cut is fail", "0 output"},
		{"head -c 2000 /dev/zero; head -c 20000 /dev/zero >&2", map[string]int{"output": 2000, "error.cut": 10752 + len(capture.Marker(9248))}, "on_cut is fail", "0 error"},
		{"head -c 3000 /dev/urandom", nil, "on_cut is fail", "0 output"}, // half the quota is 1000 bytes
	} {
		job := s.job(t)
		got := s.await(t, s.planned(t, job, s.script(t, "p", c.program), strict), sm.Executed)
		if p, err := s.Store.Plan(t.Context(), job); err != nil || p.Cut != (c.cut != "-") {
			t.Errorf("%s: the job remembers %v, %v", c.program, p, err)
		}
		if text := got.Fields["0:error"]; (text == "") != (c.err == "") || !strings.Contains(text, c.err) {
			t.Errorf("%s: error %.100q, want %q", c.program, text, c.err)
		}
		checkFields(t, got, map[string]string{"cut": c.cut})
		round := task.Decode(got.ID, got.Fields).Last()
		sizes := map[string]int{}
		for _, whole := range round.Whole {
			maps.Copy(sizes, s.streamSizes(t, whole))
		}
		if len(sizes)+len(c.whole) > 0 && !maps.Equal(sizes, c.whole) {
			t.Errorf("%s: kept are %v, want %v", c.program, sizes, c.whole)
		}
	}
}
