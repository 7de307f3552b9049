package capture

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

const patience = 10 * time.Second

func open(t testing.TB, o Options) *Stream {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = s.Finish() })
	return s
}

// pipe makes the pipe of a program that lasts, has s adopt it, and returns the end that
// the program writes into.
func pipe(t testing.TB, s *Stream) *os.File {
	t.Helper()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	held := os.NewFile(uintptr(ends[1]), "held")
	t.Cleanup(func() { _ = held.Close() })
	s.Adopt(ends[0])
	return held
}

// run runs a shell script that writes into s and returns what was captured.
func run(t testing.TB, s *Stream, script string) (Captured, error) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	held := pipe(t, s)
	cmd.Stdout, cmd.Stderr = held, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = held.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return s.Finish()
}

func TestStreamAroundTheLimit(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{0: "", 1: "1", 7: "1234567", 8: "12345678", 9: "1234" + Marker(1) + "6789"} {
		text := "123456789"[:size]
		c, err := run(t, open(t, Options{Limit: 8}), "printf %s '"+text+"'")
		sum := sha256.Sum256([]byte(text))
		if err != nil || string(c.Data) != want || c.Size != int64(size) || c.Truncated != (size > 8) || c.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%d bytes: %+v, %v", size, c, err)
		}
	}
}

// A43: all byte values, more than a pipe holds, and the file has the same.
func TestBinaryOutputIsExact(t *testing.T) {
	t.Parallel()
	want := make([]byte, 5_000_000)
	for i := range want {
		want[i] = byte(i * i >> 7)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "data"), want)
	out := filepath.Join(dir, "res/deep/out")
	c, err := run(t, open(t, Options{Limit: 5_000_000, File: out}), "cat "+dir+"/data")
	if err != nil || !bytes.Equal(c.Data, want) || c.Truncated {
		t.Errorf("%d bytes, truncated %v, %v", len(c.Data), c.Truncated, err)
	}
	if got := read(t, out); !bytes.Equal(got, want) {
		t.Errorf("the file has %d bytes", len(got))
	}
}

// Not parallel: it measures what the whole process allocates.
func TestGibibyteNeedsLittleMemory(t *testing.T) {
	const size, limit = 1 << 30, 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := open(t, Options{Limit: limit})
	c, err := run(t, s, fmt.Sprintf("printf begin; head -c %d /dev/zero; printf end", size-8))
	runtime.ReadMemStats(&after)
	if err != nil || c.Size != size || !c.Truncated || len(c.Data) != limit+len(Marker(size-limit)) ||
		!bytes.HasPrefix(c.Data, []byte("begin\x00")) || !bytes.HasSuffix(c.Data, []byte("\x00end")) {
		t.Errorf("%d of %d bytes kept, %v", len(c.Data), c.Size, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes allocated for a limit of 1 MiB", grown)
	}
	sum := sha256.New()
	sum.Write([]byte("begin"))
	for zeros, left := make([]byte, 1<<20), size-8; left > 0; left -= len(zeros) {
		sum.Write(zeros[:min(left, len(zeros))])
	}
	sum.Write([]byte("end"))
	if got := hex.EncodeToString(sum.Sum(nil)); got != c.SHA256 {
		t.Errorf("hash %s, want %s", c.SHA256, got)
	}
}

// Finish waits for nobody: neither for a writer that keeps still nor for one that
// never stops, and still reads all that was written before.
func TestWriterHoldsTheEnd(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Limit: 1 << 20})
	held := pipe(t, s)
	want := bytes.Repeat([]byte("x"), 60_000)
	if _, err := held.Write(want); err != nil {
		t.Fatal(err)
	}
	c, err := s.Finish()
	if err != nil || !bytes.Equal(c.Data, want) {
		t.Errorf("%d bytes, %v", len(c.Data), err)
	}
	closed(t, held)
	if again, err := s.Finish(); err != nil || again.SHA256 != c.SHA256 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestWriterThatNeverStops(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Limit: 1000})
	held := pipe(t, s)
	const writers = 3 // so many that the pipe is always full
	ended := make(chan error, writers)
	for range writers {
		go func() {
			var err error
			for err == nil {
				_, err = held.Write(make([]byte, 2*widePipe))
			}
			ended <- err
		}()
	}
	wait.Eventually(t, patience, func() bool { return s.Size() > wideAfter }, "it writes")
	finished := make(chan Captured, 1)
	go func() {
		c, _ := s.Finish()
		finished <- c
	}()
	if c := wait.Receive(t, patience, finished, "Finish"); !c.Truncated {
		t.Errorf("got %+v", c)
	}
	for range writers {
		if err := wait.Receive(t, patience, ended, "the writer ends"); !errors.Is(err, syscall.EPIPE) {
			t.Error(err)
		}
	}
}

// closed fails the test unless the other end of the pipe gets closed: a fork that
// is under way holds a copy of it until its program runs.
func closed(t *testing.T, held *os.File) {
	t.Helper()
	wait.Eventually(t, time.Minute, func() bool {
		_, err := held.WriteString("x")
		return errors.Is(err, syscall.EPIPE)
	}, "the pipe is closed")
}

// What is read goes back into the same pipe here, so that it never gets empty.
func TestRestIsBounded(t *testing.T) {
	t.Parallel()
	read, program, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &pump{file: program, excerpt: NewExcerpt(10)}
	if _, err := program.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	done := make(chan int64, 1)
	go func() {
		_ = control(read, func(fd uintptr) error {
			p.take(int(fd))
			return nil
		})
		p.release()
		done <- p.moved
	}()
	moved := wait.Receive(t, patience, done, "the rest is read")
	if err := errors.Join(p.pipeErr, p.fileErr, program.Close(), read.Close()); moved != 1000 || err != nil {
		t.Errorf("%d bytes, %v", moved, err)
	}
}

// What a short program wrote comes without a pipe, and goes the same way.
func TestWrittenAtTheEnd(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "file")
	s := open(t, Options{Limit: 1000, File: name})
	want := bytes.Repeat([]byte("x"), 60_000)
	if n, err := s.Write(want); n != len(want) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	c, err := s.Finish()
	if err != nil || c.Size != 60_000 || !c.Truncated || !bytes.Equal(read(t, name), want) {
		t.Errorf("%d bytes, %v", c.Size, err)
	}
}

// The line is there while the program still runs.
func TestReadWhileItWrites(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Limit: 100})
	held := pipe(t, s)
	for i, line := range []string{"one\n", "two\n"} {
		_, _ = held.WriteString(line)
		wait.Eventually(t, patience, func() bool { return s.Size() == int64(4*i+4) }, "it arrives")
		if data, at := s.From(int64(4*i), 100); string(data) != line || at != int64(4*i) {
			t.Errorf("%q at %d", data, at)
		}
	}
}

// The program's own end blocks: one that does not expect EAGAIN would fail.
func TestProgramEndBlocks(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	flags, err := unix.FcntlInt(pipe(t, s).Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("flags %o, %v", flags, err)
	}
}

func control(f *os.File, call func(fd uintptr) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	inner := error(nil)
	return errors.Join(raw.Control(func(fd uintptr) { inner = call(fd) }), inner)
}

func write(t testing.TB, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// An empty round: what capturing costs where nothing is written.
func BenchmarkEmptyRound(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s, err := Open(Options{Limit: 1 << 20})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Finish(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkThroughput(b *testing.B) {
	const size = 64 << 20
	b.SetBytes(size)
	block := make([]byte, 128<<10)
	for b.Loop() {
		s, err := Open(Options{Limit: 1 << 20})
		if err != nil {
			b.Fatal(err)
		}
		held := pipe(b, s)
		for range size / len(block) {
			_, _ = held.Write(block)
		}
		if c, err := s.Finish(); err != nil || c.Size != size {
			b.Fatal(c.Size, err)
		}
	}
}

// All of a stream that does not fit is kept, however it comes, up to the limit for that; of a longer one the tail comes after that. Of one
// that fits there is no file.
func TestWhole(t *testing.T) {
	t.Parallel()
	for _, step := range []int{1, 3, 10, 100} {
		for size, kept := range map[int]bool{0: false, 10: false, 11: true, 40: true, 41: true, 45: true, 46: true, 100: true} {
			s, err := Open(Options{Limit: 10, Stream: "stdout", Whole: 40, WholeFile: func() (*os.File, error) { return os.CreateTemp(t.TempDir(), "") }})
			if err != nil {
				t.Fatal(err)
			}
			want := make([]byte, size)
			for i := range want {
				want[i] = byte(i)
			}
			for part := range slices.Chunk(want, step) {
				_, _ = s.Write(part)
			}
			for range 2 {
				if _, err := s.Finish(); err != nil {
					t.Fatal(err)
				}
			}
			whole, err := s.Whole()
			if (whole != nil) != kept || (err != nil) != (size > 45) {
				t.Errorf("%d bytes, %d at a time: %v, %v", size, step, whole, err)
			}
			if whole == nil {
				continue
			}
			if size > 40 {
				tail := min(5, size-40)
				marker := ""
				if size > 45 {
					marker = Marker(int64(size - 40 - tail))
				}
				want = slices.Concat(want[:40], []byte(marker), want[size-tail:])
			}
			got := make([]byte, 200)
			if n, _ := whole.ReadAt(got, 0); !bytes.Equal(got[:n], want) {
				t.Errorf("%d bytes, %d at a time: kept is %v", size, step, got[:n])
			}
			_ = whole.Close()
		}
	}
	s, err := Open(Options{Limit: 10, Stream: "stdout", Whole: 40, WholeFile: func() (*os.File, error) { return os.Open("/no/such") }})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = s.Write(make([]byte, 20))
	if c, err := s.Finish(); err != nil || c.Size != 20 {
		t.Errorf("%+v, %v", c, err)
	}
	if whole, err := s.Whole(); whole != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, %v", whole, err)
	}
}
