// Package capture takes what a program writes to its stdout and stderr.
//
// A [Stream] feeds an [Excerpt] and, if one is named, a file: with what a short program
// wrote, at its end, or from the pipe of one that lasts, which one goroutine reads while
// the program writes. The Excerpt keeps head and tail in bounded memory, counts and
// hashes everything, and can be read meanwhile. It is an [io.Writer] and serves alone
// as well.
//
// The program is never blocked by a full disk: what a file cannot take is
// reported at the end, and reading goes on.
package capture

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Captured is a stream at its end.
type Captured struct {
	// Data is everything if not Truncated, else the first half (rounded up) and the
	// last half of the limit with Marker between them. Nil if nothing was written.
	Data []byte
	// Size is the number of bytes written, kept or not.
	Size int64
	// SHA256 of all Size bytes, in hexadecimal.
	SHA256 string
	// Truncated says that Size was more than the limit.
	Truncated bool
}

// Marker is the text that stands between head and tail of an output that was
// cut, for the given number of missing bytes. It is not counted in the limit.
func Marker(missing int64) string {
	return markerBegins + strconv.FormatInt(missing, 10) + markerEnds
}

const markerBegins, markerEnds = "\n[tdf: ", " bytes left out]\n"

// Behind is what stands in a text behind the Data of a stream of that size that was cut, empty if nothing does.
func Behind(text string, size int64) string {
	for at := 0; ; at++ { // a program may write such a line itself
		next := strings.Index(text[at:], markerBegins)
		if next < 0 {
			return ""
		}
		at += next
		number, tail, _ := strings.Cut(text[at+len(markerBegins):], markerEnds)
		missing, err := strconv.ParseInt(number, 10, 64)
		if limit := size - missing; err == nil && int64(at) == limit-limit/2 && int64(len(tail)) > limit/2 {
			return tail[limit/2:]
		}
	}
}

// CutSuffix ends the name of a file that has not all of a stream (see [Stream.Whole]).
const CutSuffix = ".cut"

// Options say what is kept of a stream.
type Options struct {
	// Limit is how many bytes the Excerpt keeps.
	Limit int64
	// File receives all bytes; "" for none. Directories are created, a regular file
	// of that name is replaced; a link, a device or a directory is an error.
	File string
	// Stream is "stdout" or "stderr", for errors.
	Stream string
	// Whole is how many bytes may be kept of a stream that is longer than Limit, in a file that WholeFile makes: all of it, or
	// so many, a Marker, and the tail of the Excerpt. No more than Limit is no such file.
	Whole     int64
	WholeFile func() (*os.File, error)
}

// Stream takes what a program writes to stdout or stderr into an Excerpt and, if named,
// a file. Every Stream needs Finish.
type Stream struct {
	*Excerpt
	pump  pump
	err   error
	ended bool
}

// Open makes the file, if one is named. The error is an *OutputError.
func Open(o Options) (*Stream, error) {
	s := &Stream{Excerpt: NewExcerpt(o.Limit), pump: pump{options: o}}
	s.pump.excerpt = s.Excerpt
	if o.File != "" {
		var err error
		if s.pump.file, err = openNamed(o.File); err != nil {
			return nil, &OutputError{Stream: o.Stream, Name: o.File, Err: err}
		}
	}
	return s, nil
}

// Write takes what a program wrote. It never fails: Finish tells what could not be
// kept. It is not for a Stream that has a pipe.
func (s *Stream) Write(b []byte) (int, error) {
	s.pump.pass(b)
	return len(b), nil
}

// Adopt reads the pipe of that number, which becomes the Stream's, in a goroutine of its
// own. A Stream adopts one pipe. It makes that end not to block, and leaves the program's
// as it is: one that does not expect it would take EAGAIN for a failure.
func (s *Stream) Adopt(pipe int) { s.pump.begin(pipe) }

// Finish reads what is in the pipe, if there is one, without waiting for a writer that
// is still there, and closes everything. Call it once the program is dead; what comes
// later is lost. The error, an *OutputError, says that not all could be kept,
// e.g. ENOSPC of the file; Captured is complete nevertheless. Calling it again gives
// the same.
func (s *Stream) Finish() (Captured, error) {
	if !s.ended {
		s.ended = true
		s.pump.stop()
		s.err = s.outputError()
		if s.pump.whole != nil && s.pump.wholeErr != nil {
			s.endWhole()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.captured(), s.err // nobody writes any more, so no copy
}

// Whole returns the file of a stream that the Excerpt has cut, nil if none was made. Call it after Finish, and close the file. The
// error says why the file has not all of the stream.
func (s *Stream) Whole() (*os.File, error) { return s.pump.whole, s.pump.wholeErr }

// endWhole writes what stands at the end of a file that was full.
func (s *Stream) endWhole() {
	p := &s.pump
	tail := s.appendTail(nil, 0, s.limit)
	tail = tail[max(0, p.options.Whole+int64(len(tail))-p.moved):] // without what is in the file already
	if missing := p.moved - p.options.Whole - int64(len(tail)); missing > 0 {
		tail = slices.Concat([]byte(Marker(missing)), tail)
	} else {
		p.wholeErr = nil
	}
	if _, err := p.whole.Write(tail); err != nil {
		p.loseWhole(err)
	}
}

func (s *Stream) outputError() error {
	switch {
	case s.pump.fileErr != nil:
		return &OutputError{Stream: s.pump.options.Stream, Name: s.pump.options.File, Err: s.pump.fileErr}
	case s.pump.pipeErr != nil:
		return &OutputError{Stream: s.pump.options.Stream, Err: s.pump.pipeErr}
	}
	return nil
}

const (
	chunk = 64 << 10
	// wideAfter is how many bytes a program writes before its pipe is made wider:
	// widening costs memory of the kernel, of which a user has 64 MiB for all pipes.
	wideAfter = 1 << 20
	widePipe  = 256 << 10
)

// chunks are shared by all streams, so that a silent program has no buffer at all.
var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// pump moves bytes from the pipe to the excerpt and the file, in one goroutine.
type pump struct {
	pipe    *os.File // nil for none
	raw     syscall.RawConn
	file    *os.File // nil if none, or after its first error
	excerpt *Excerpt
	options Options
	whole   *os.File // from the first byte that the excerpt does not hold
	moved   int64
	buffer  *[chunk]byte
	wide    bool
	over    bool          // no more to read
	done    chan struct{} // once there is a pipe
	// The first error of each kind, to be read after done.
	fileErr, pipeErr, wholeErr error
}

// begin makes reading wait in Go instead of in the kernel, and reads.
func (p *pump) begin(fd int) {
	err := os.NewSyscallError("fcntl", unix.SetNonblock(fd, true))
	p.pipe, p.done = os.NewFile(uintptr(fd), "pipe"), make(chan struct{})
	raw, rawErr := p.pipe.SyscallConn()
	p.raw = raw
	go p.run(errors.Join(err, rawErr))
}

// run reads until the last writer is gone or stop ends the wait for it.
func (p *pump) run(err error) {
	defer close(p.done)
	defer p.release()
	for err == nil && !p.over {
		err = p.raw.Read(p.move)
	}
	if err != nil {
		p.rest(err)
	}
}

// stop ends the wait for more, reads the rest and closes everything.
func (p *pump) stop() {
	if p.pipe != nil {
		// A deadline long over wakes the reader. It fails only for what cannot be polled.
		_ = p.pipe.SetReadDeadline(time.Unix(1, 0))
		<-p.done
		_ = p.pipe.Close()
	}
	if p.file != nil {
		p.failed(p.file.Close()) // network file systems tell of a full disk here
	}
}

// move reads and passes on one chunk; false means that there is nothing yet.
func (p *pump) move(fd uintptr) bool {
	if p.buffer == nil {
		p.buffer, _ = chunks.Get().(*[chunk]byte)
	}
	n, err := unix.Read(int(fd), p.buffer[:])
	switch {
	case errors.Is(err, unix.EAGAIN):
		if !p.wide { // who writes a lot will need it again at once
			p.release()
		}
		return false
	case errors.Is(err, unix.EINTR):
		return true
	case err != nil:
		p.pipeErr = os.NewSyscallError("read", err)
		p.over = true
	case n == 0:
		p.over = true
	default:
		p.pass(p.buffer[:n])
		p.widen(fd)
	}
	return true
}

// release gives the buffer to other streams.
func (p *pump) release() {
	if p.buffer != nil {
		chunks.Put(p.buffer)
		p.buffer = nil
	}
}

func (p *pump) pass(b []byte) {
	p.moved += int64(len(b))
	if p.moved > p.options.Limit && p.options.Whole > p.options.Limit && p.wholeErr == nil {
		p.keepWhole(b)
	}
	_, _ = p.excerpt.Write(b) // never fails
	if p.file == nil {
		return
	}
	if _, err := p.file.Write(b); err != nil {
		p.failed(err)
		p.failed(p.file.Close())
		p.file = nil // bytes after a gap would be taken for what the program wrote
	}
}

// keepWhole writes b behind all that came before, which the excerpt still holds if there is no file yet, as far as there is room.
func (p *pump) keepWhole(b []byte) {
	var err error
	if p.whole == nil {
		if p.whole, err = p.options.WholeFile(); err == nil {
			b = slices.Concat(p.excerpt.Captured().Data, b)
		}
	}
	if over := p.moved - p.options.Whole; err == nil && over > 0 {
		b, p.wholeErr = b[:max(0, int64(len(b))-over)], errLonger
	}
	if err == nil {
		_, err = p.whole.Write(b)
	}
	if err != nil {
		p.loseWhole(err)
	}
}

// loseWhole gives the file up.
func (p *pump) loseWhole(err error) {
	if p.whole != nil {
		_ = p.whole.Close() // nothing of it stays
	}
	p.whole, p.wholeErr = nil, err
}

var errLonger = errors.New("it is longer than output_max")

// failed keeps the first error of the file.
func (p *pump) failed(err error) {
	if p.fileErr == nil {
		p.fileErr = err
	}
}

// widen saves a program that writes a lot most of its waits for us.
func (p *pump) widen(fd uintptr) {
	if p.wide || p.moved < wideAfter {
		return
	}
	p.wide = true
	// A user at the limit for pipes keeps the narrow one.
	_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, widePipe)
}

// rest is for the end of the wait.
func (p *pump) rest(cause error) {
	if !errors.Is(cause, os.ErrDeadlineExceeded) {
		p.pipeErr = cause
		return
	}
	if err := p.raw.Control(func(fd uintptr) { p.take(int(fd)) }); err != nil {
		p.pipeErr = err
	}
}

// take moves what is in the pipe now, and no more: a process that escaped may
// still be writing. So it never waits, even where reading blocks.
func (p *pump) take(fd int) {
	left, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	if err != nil {
		p.pipeErr = os.NewSyscallError("ioctl", err)
		return
	}
	for end := p.moved + int64(left); p.moved < end && !p.over; {
		if !p.move(uintptr(fd)) {
			return
		}
	}
}

// OutputError means that a program's output could not be kept in full.
type OutputError struct {
	// Stream is "stdout" or "stderr", as in [Options].
	Stream string
	// Name is the file, or "" if the pipe failed.
	Name string
	// Err is the detail; it wraps syscall.ENOSPC when the disk is full.
	Err error
}

// Error names the stream, its file and the detail.
func (e *OutputError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("read %s of the program: %v", e.Stream, e.Err)
	}
	return fmt.Sprintf("keep %s of the program in %s: %v", e.Stream, e.Name, e.Err)
}

// Unwrap returns the detail.
func (e *OutputError) Unwrap() error { return e.Err }
