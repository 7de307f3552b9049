// Package capture takes what a program writes to its stdout and stderr.
//
// A [Stream] is a pipe: the program writes, one goroutine reads and feeds an
// [Excerpt] and, if one is named, a file. It begins a moment after the program, so
// that a short round costs no goroutine and no wake-up. The Excerpt keeps head and tail in
// bounded memory, counts and hashes everything, and can be read while the program
// still writes. It is an [io.Writer] and serves without a pipe as well.
//
// The program is never blocked by a full disk: what a file cannot take is
// reported at the end, and reading goes on.
package capture

import "strconv"

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
	return "\n[tdf: " + strconv.FormatInt(missing, 10) + " bytes left out]\n"
}
