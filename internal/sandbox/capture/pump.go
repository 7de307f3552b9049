package capture

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	chunk = 64 << 10
	// wideAfter is how many bytes a program writes before its pipe is made wider:
	// widening costs memory of the kernel, of which a user has 64 MiB for all pipes.
	wideAfter = 1 << 20
	widePipe  = 256 << 10
	// headStart is how long a program writes into the pipe before anybody reads.
	// One that ends before, as most short ones do, never wakes this process: what
	// it wrote is read at its end. One that fills the pipe waits so long, once.
	headStart = 10 * time.Millisecond
)

// chunks are shared by all streams, so that a silent program has no buffer at all.
var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// pump moves bytes from the pipe to the excerpt and the file, in one goroutine
// that begins after the head start.
type pump struct {
	fd      int // of the pipe, until it is opened
	start   *time.Timer
	opened  chan struct{}
	pipe    *os.File
	raw     syscall.RawConn
	file    *os.File // nil if none, or after its first error
	excerpt *Excerpt
	moved   int64
	buffer  *[chunk]byte
	wide    bool
	over    bool // no more to read
	done    chan struct{}
	// The first error of each kind, to be read after done.
	fileErr, pipeErr error
}

func newPump(fd int, file *os.File, e *Excerpt) *pump {
	p := &pump{fd: fd, file: file, excerpt: e, opened: make(chan struct{}), done: make(chan struct{})}
	p.start = time.AfterFunc(headStart, p.run)
	return p
}

// run reads until the last writer is gone or stop ends the wait for it.
func (p *pump) run() {
	defer close(p.done)
	defer p.release()
	err := p.open()
	close(p.opened)
	for err == nil && !p.over {
		err = p.raw.Read(p.move)
	}
	if err != nil {
		p.rest(err)
	}
}

// open makes reading wait in Go instead of in the kernel.
func (p *pump) open() (err error) {
	nonblock := os.NewSyscallError("fcntl", unix.SetNonblock(p.fd, true))
	p.pipe = os.NewFile(uintptr(p.fd), "pipe")
	p.raw, err = p.pipe.SyscallConn()
	return errors.Join(nonblock, err)
}

// stop ends the wait for more, reads the rest and closes everything.
func (p *pump) stop() {
	if p.start.Stop() { // nobody has read yet
		p.take(p.fd)
		p.release()
		_ = unix.Close(p.fd)
	} else {
		<-p.opened
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
