package capture

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Options say what is kept of a stream.
type Options struct {
	// Limit is how many bytes the Excerpt keeps.
	Limit int64
	// File receives all bytes; "" for none. Directories are created, a regular file
	// of that name is replaced; a link, a device or a directory is an error.
	File string
	// Stream is "stdout" or "stderr", for errors.
	Stream string
}

// Stream is a pipe a program writes into, read into an Excerpt and, if named, a
// file. Every Stream needs Finish.
type Stream struct {
	*Excerpt
	options Options
	program *os.File
	pump    *pump
	err     error
	ended   bool
}

// Open makes the file, if one is named, and the pipe, which is read from soon
// afterwards. The error is an *OutputError if it is about the file.
func Open(o Options) (*Stream, error) {
	s := &Stream{Excerpt: NewExcerpt(o.Limit), options: o}
	var file *os.File
	if o.File != "" {
		var err error
		if file, err = openNamed(o.File); err != nil {
			return nil, &OutputError{Stream: o.Stream, Name: o.File, Err: err}
		}
	}
	if err := s.connect(file); err != nil {
		if file != nil {
			_ = file.Close() // nothing was written
		}
		return nil, fmt.Errorf("pipe for %s: %w", o.Stream, err)
	}
	return s, nil
}

// connect makes the pipe. Only our end is ever made not to block: a program that
// does not expect it would take EAGAIN for a failure.
func (s *Stream) connect(file *os.File) error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return os.NewSyscallError("pipe2", err)
	}
	s.program = os.NewFile(uintptr(ends[1]), s.options.Stream)
	s.pump = newPump(ends[0], file, s.Excerpt)
	return nil
}

// ForProgram is the end the program gets. Close ours of it with CloseForProgram
// once the program has it.
func (s *Stream) ForProgram() *os.File { return s.program }

// CloseForProgram closes it; once is enough.
func (s *Stream) CloseForProgram() {
	_ = s.program.Close() // nothing was written by this process
}

// Finish reads what is in the pipe, without waiting for a writer that is still
// there, and closes everything. Call it once the program is dead; what comes
// later is lost. The error, an *OutputError, says that not all could be kept,
// e.g. ENOSPC of the file; Captured is whole all the same. Calling it again gives
// the same.
func (s *Stream) Finish() (Captured, error) {
	if !s.ended {
		s.ended = true
		s.CloseForProgram()
		s.pump.stop()
		s.err = s.outputError()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.captured(), s.err // nobody writes any more, so no copy
}

func (s *Stream) outputError() error {
	switch {
	case s.pump.fileErr != nil:
		return &OutputError{Stream: s.options.Stream, Name: s.options.File, Err: s.pump.fileErr}
	case s.pump.pipeErr != nil:
		return &OutputError{Stream: s.options.Stream, Err: s.pump.pipeErr}
	}
	return nil
}
