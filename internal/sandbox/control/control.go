// Package control reads what a program tells its worker through the file
// $TDF_CONTROL.
//
// The program writes lines key=value to that file, which it may create, append
// to or replace. Known are "progress": a part from 0 to 1 or a percentage, then
// optionally a space and a text, and "result": all that stands behind the equals
// sign, byte for byte, as in
//
//	progress=0.4 reading input
//	progress=40% reading input
//	result=42
//
// The last good line counts. Progress counts once its line feed is written, and
// only the last 64 KiB are looked at; the result is what the file says when the
// program has ended (see [Reader.Result]). The program is not trusted: nothing is
// followed that is not a plain file, and reading never blocks.
package control

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// ErrRefused means that the control file is no plain file.
var ErrRefused = errors.New("control: not a regular file")

// Progress is how far a program says it has come.
type Progress struct {
	// Part is from 0 to 1.
	Part float64
	// Text is what it is doing, at most 200 bytes of valid UTF-8 without control
	// characters; may be empty.
	Text string
}

// Reader follows one control file. It is for one goroutine; the zero value but
// for Path is ready, and there is nothing to close.
type Reader struct {
	// Path is the file, which need not exist yet.
	Path string
	// As runs what opens the file, with the rights of the program's user: a hard link
	// to a file that the program cannot read is not read for it. Nil is this process'.
	As func(open func() error) error

	progress Progress
	warnings []string
	seen     stamp
}

// Poll returns what the program has said last and whether that is new since the
// Poll before. If the file has not changed it costs one stat. After an error,
// which is ErrRefused or the system's, Progress is still the last known.
func (r *Reader) Poll() (p Progress, changed bool, err error) {
	text, fresh, err := r.read()
	if err != nil || !fresh {
		return r.progress, false, err
	}
	before := r.progress
	r.parse(text)
	return r.progress, r.progress != before, nil
}

// Warnings are the lines that were not understood, in the program's own words
// but made printable; each is told once and at most ten altogether.
func (r *Reader) Warnings() []string { return slices.Clone(r.warnings) }

func (r *Reader) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(r.warnings) < maxWarnings && !slices.Contains(r.warnings, text) {
		r.warnings = append(r.warnings, text)
	}
}

// maxRead is how much of the end of the file is looked at.
const maxRead = 64 << 10

// stamp tells one state of the file from another.
type stamp struct {
	device, inode    uint64
	size             int64
	modified, change unix.Timespec
}

func stampOf(s *unix.Stat_t) stamp {
	return stamp{device: s.Dev, inode: s.Ino, size: s.Size, modified: s.Mtim, change: s.Ctim}
}

// read returns the end of the file, from the beginning of a line on, if it has
// changed since it was read last.
func (r *Reader) read() (text string, fresh bool, err error) {
	var stat unix.Stat_t
	err = retry(func() error { return unix.Lstat(r.Path, &stat) })
	switch {
	case errors.Is(err, unix.ENOENT):
		return "", false, nil
	case err != nil:
		return "", false, &os.PathError{Op: "stat", Path: r.Path, Err: err}
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", false, fmt.Errorf("%w: %s", ErrRefused, r.Path)
	case stampOf(&stat) == r.seen:
		return "", false, nil
	}
	return r.reread()
}

// reread opens the file, looking again at what it is: it may be another by now.
func (r *Reader) reread() (text string, fresh bool, err error) {
	fd, stat, err := r.open()
	if err != nil || fd < 0 {
		return "", false, err
	}
	defer func() { _ = unix.Close(fd) }()
	text, err = r.tail(fd, stat.Size)
	if err == nil {
		r.seen = stampOf(stat) // from before reading: what comes meanwhile is seen next time
	}
	return text, err == nil, err
}

// open opens the file if it is there and a plain one; fd is negative if it is not
// there.
func (r *Reader) open() (fd int, stat *unix.Stat_t, err error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd = -1
	open := func() error {
		return retry(func() (err error) {
			fd, err = unix.Open(r.Path, flags, 0)
			return err //nolint:wrapcheck // wrapped below
		})
	}
	if r.As == nil {
		err = open()
	} else if err = unix.Access(r.Path, unix.F_OK); err == nil { // taking its rights is dear, and most programs never write the file
		err = r.As(open)
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return -1, nil, nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		return -1, nil, fmt.Errorf("%w: %s", ErrRefused, r.Path)
	case err != nil:
		return -1, nil, &os.PathError{Op: "open", Path: r.Path, Err: err}
	}
	stat = new(unix.Stat_t)
	switch err = retry(func() error { return unix.Fstat(fd, stat) }); {
	case err != nil:
		err = &os.PathError{Op: "stat", Path: r.Path, Err: err}
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		err = fmt.Errorf("%w: %s", ErrRefused, r.Path)
	default:
		return fd, stat, nil
	}
	_ = unix.Close(fd)
	return -1, nil, err
}

// tail reads the last maxRead bytes, without a line that began before them.
func (r *Reader) tail(fd int, size int64) (string, error) {
	offset := max(size-maxRead, 0)
	buffer := make([]byte, size-offset)
	done := 0
	for done < len(buffer) {
		n, err := unix.Pread(fd, buffer[done:], offset+int64(done))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return "", &os.PathError{Op: "read", Path: r.Path, Err: err}
		}
		if n == 0 {
			break // truncated meanwhile
		}
		done += n
	}
	buffer = buffer[:done]
	if offset > 0 {
		buffer = buffer[bytes.IndexByte(buffer, '\n')+1:]
	}
	return string(buffer), nil
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

const (
	maxText     = 200
	maxWarnings = 10
	// maxShown is how much of a strange line a warning quotes.
	maxShown = 60
)

// parse takes whole lines; the rest behind the last line feed is left for later.
func (r *Reader) parse(text string) {
	for line := range strings.Lines(text) {
		line, whole := strings.CutSuffix(line, "\n")
		line = strings.TrimSpace(line)
		if !whole || line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		switch key = strings.TrimSpace(key); {
		case !ok:
			r.warn("line %q is not of the form key=value", clean(line, maxShown))
		case key == "progress":
			r.take(value)
		case key == resultKey: // at the end, by Result
		default:
			r.warn("unknown key %q", clean(key, maxShown))
		}
	}
}

func (r *Reader) take(value string) {
	p, err := parseProgress(value)
	if err != nil {
		r.warn("progress=%s: %v", clean(value, maxShown), err)
		return
	}
	r.progress = p
}

func parseProgress(value string) (Progress, error) {
	number, text, _ := strings.Cut(strings.TrimSpace(value), " ")
	digits, percent := strings.CutSuffix(number, "%")
	part, err := strconv.ParseFloat(digits, 64)
	if percent {
		part /= 100
	}
	// Written so that NaN is refused as well.
	if err != nil || !(part >= 0 && part <= 1) {
		return Progress{}, fmt.Errorf("want a part from 0 to 1 or a percentage, as in 0.4 or 40%%, not %q", clean(number, maxShown))
	}
	return Progress{Part: math.Abs(part), Text: clean(text, maxText)}, nil
}

// clean makes text fit for a terminal and a record: no control or invisible
// characters, no broken UTF-8, at most limit bytes, cut between characters.
func clean(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\u00a0':
			return ' '
		case r == utf8.RuneError || unicode.IsPrint(r):
			return r
		}
		return -1
	}, text)
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd"))
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return strings.TrimSpace(text[:limit])
}

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
