package control

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	resultKey = "result"
	// MaxResult is how long a result may be, in bytes.
	MaxResult = 64 << 10
	// maxSearched is how much of the end of the file is searched for a result.
	maxSearched = 16 << 20
)

// Why a result cannot be had.
var (
	// ErrResultTooLong means that a result is longer than MaxResult.
	ErrResultTooLong = errors.New("control: the result= is longer than 64 KiB: write it to stdout, or put it in a file and its name here")
	// ErrResultMissed means that a result may stand in a part of the file that is
	// not looked at.
	ErrResultMissed = errors.New("control: the file is larger than 16 MiB, without a result= in the last part: write less, or the result last")
)

// Result returns what the last line result=... of the file says, for when the
// program has ended: that line need not have a line feed. ok is false if there is
// none. The error matches [ErrResultTooLong], [ErrResultMissed] or [ErrRefused], or
// is the system's.
func (r *Reader) Result() (text string, ok bool, err error) {
	fd, stat, err := r.open()
	if err != nil || fd < 0 {
		return "", false, err
	}
	file := os.NewFile(uintptr(fd), r.Path)
	defer func() { _ = file.Close() }() // nothing is written through it
	offset := max(stat.Size-maxSearched, 0)
	text, ok, err = lastResult(io.NewSectionReader(file, offset, stat.Size-offset), offset > 0)
	if err == nil && !ok && offset > 0 {
		err = ErrResultMissed
	}
	if err != nil {
		return "", false, fmt.Errorf("%s: %w", r.Path, err)
	}
	return text, ok, nil
}

// lastResult finds the last result in a text, which may begin within a line.
func lastResult(text io.Reader, within bool) (result string, ok bool, err error) {
	in := bufio.NewReaderSize(text, MaxResult+maxShown)
	var tooLong error
	for whole := !within; ; {
		line, err := in.ReadSlice('\n')
		if value, is := resultOf(line); whole && is {
			result, ok, tooLong = string(value), true, nil
			if len(value) > MaxResult || errors.Is(err, bufio.ErrBufferFull) {
				result, tooLong = "", ErrResultTooLong
			}
		}
		whole = err == nil // what comes next begins a line
		switch {
		case errors.Is(err, io.EOF):
			return result, ok, tooLong
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return "", false, fmt.Errorf("read: %w", err)
		}
	}
}

// resultOf returns what stands behind the equals sign of a result.
func resultOf(line []byte) ([]byte, bool) {
	key, value, ok := bytes.Cut(line, []byte("="))
	return bytes.TrimSuffix(value, []byte("\n")), ok && string(bytes.TrimSpace(key)) == resultKey
}
