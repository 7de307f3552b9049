package shim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// both runs a program and returns its streams.
func both(t *testing.T, s *Slot, p Program) (out, aside *output) {
	t.Helper()
	out, aside = &output{}, &output{}
	p.Env, p.Output = []string{path}, [2]Taker{out, aside}
	if r, err := s.Run(context.Background(), p); err != nil || r.ExitCode != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	return out, aside
}

// What a short program writes comes with its end, byte for byte; what does not fit into
// a packet comes by its pipes, which a program does not notice.
func TestOutputOfAShortProgram(t *testing.T) {
	t.Parallel()
	eachLayerWith(t, Options{headStart: time.Hour}, func(t *testing.T, s *Slot) {
		dir := script(t, `cat out; cat err >&2`)
		for _, c := range []struct {
			out, err int
			adopted  bool
		}{{0, 0, false}, {1, 0, false}, {0, 1, false}, {5000, 7000, false}, {inline - 1, 1, false}, {inline, 1, true}, {50_000, 50_000, true}} {
			wantOut, wantErr := noise(c.out, 7), noise(c.err, 11)
			for name, text := range map[string]string{"out": wantOut, "err": wantErr} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, aside := both(t, s, Program{Dir: dir})
			if out.String() != wantOut || aside.String() != wantErr {
				t.Errorf("%+v: %d and %d bytes, or others", c, out.text.Len(), aside.text.Len())
			}
			if out.adopted != c.adopted || aside.adopted != c.adopted {
				t.Errorf("%+v: by pipes %v and %v", c, out.adopted, aside.adopted)
			}
		}
	})
}

// noise is text of all byte values.
func noise(n, seed int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * i * seed >> 5)
	}
	return string(b)
}

// Of a program that lasts the worker has the pipes while it runs, with what it wrote before.
func TestOutputOfAProgramThatLasts(t *testing.T) {
	t.Parallel()
	eachLayerWith(t, Options{headStart: time.Millisecond}, func(t *testing.T, s *Slot) {
		dir := script(t, `echo one; echo aside >&2; read -r go < fifo; head -c 300000 /dev/zero; echo two`)
		fifo := filepath.Join(dir, "fifo")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		first := make(chan string, 1)
		out, aside := &live{first: first}, &output{}
		b := begin(t, s, Program{Dir: dir, Output: [2]Taker{out, aside}})
		if got := wait.Receive(t, 15*time.Second, first, "it is seen while the program runs"); got != "one\n" {
			t.Errorf("got %q", got)
		}
		tell, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = tell.WriteString("go\n")
		_ = tell.Close()
		b.wait(t)
		if text := out.String(); b.err != nil || text != "one\n"+strings.Repeat("\x00", 300_000)+"two\n" || aside.String() != "aside\n" {
			t.Errorf("%d bytes, aside %q, %v", len(text), aside, b.err)
		}
	})
}

// live is an output that tells of the first bytes.
type live struct {
	output
	first chan<- string
}

func (l *live) Adopt(pipe int) {
	b := make([]byte, 100)
	n, _ := unix.Read(pipe, b)
	_, _ = l.Write(b[:n])
	l.first <- string(b[:n])
	l.output.Adopt(pipe)
}

// Pipes for which there is no room are an error, not silence.
func TestPipesThatDoNotArrive(t *testing.T) {
	t.Parallel()
	p := Program{}
	if err := p.adopt(&packet{}); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("got %v", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = write.Close() }()
	fd, err := unix.FcntlInt(read.Fd(), unix.F_DUPFD_CLOEXEC, 0) // no program of another test has it
	if err != nil {
		t.Fatal(err)
	}
	_ = read.Close()
	if err := p.adopt(&packet{files: []int{fd}}); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("got %v", err)
	}
	wait.Eventually(t, 10*time.Second, func() bool { // a process that is about to begin one may have it for a moment
		_, err := write.WriteString("x")
		return errors.Is(err, syscall.EPIPE)
	}, "the one that arrived is still open")
}

// Another process may have opened the pipe too, and read what was there: the shim waits for nothing.
func TestStolenOutputHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(read.Close(), write.Close()) }()
	if _, err := write.WriteString("abc"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	if n := readNow(int(read.Fd()), b); string(b[:n]) != "abc" {
		t.Errorf("got %q", b[:n])
	}
}

// The standard input is empty, and each round has one of its own.
func TestStandardInput(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	dir := script(t, `cat; readlink /proc/self/fd/0; flock -n 0 && echo free; exec 9<&0; flock -n 9 sleep 0`)
	for range 2 {
		if _, text := run(t, s, Program{Dir: dir}); text != "/dev/null\nfree\n" {
			t.Errorf("got %q", text)
		}
	}
}

// A round that ends with a message that makes no sense is that of a lost shim.
func TestEndings(t *testing.T) {
	t.Parallel()
	e := ending{Result: Result{Started: true, ExitCode: 3}, Written: [2]int{3, 2}}
	message, err := e.encode([]byte("outer"))
	if err != nil {
		t.Fatal(err)
	}
	got, output, err := decodeEnding(message[1:])
	if err != nil || got.Result != e.Result || string(output[0]) != "out" || string(output[1]) != "er" {
		t.Errorf("%+v, %q, %v", got, output, err)
	}
	for n := range len(message) - 1 {
		if _, _, err := decodeEnding(message[1 : 1+n]); err == nil {
			t.Errorf("%d of %d bytes are taken for all", n, len(message)-1)
		}
	}
	if _, _, err := decodeEnding(append(message[1:], 'x')); err == nil {
		t.Error("a byte too many is taken")
	}
}
