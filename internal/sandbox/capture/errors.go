package capture

import "fmt"

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
