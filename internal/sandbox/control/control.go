// Package control reads what a program tells its worker through the file
// $TDF_CONTROL.
//
// The program writes lines key=value to that file, which it may create, append
// to or replace. Known are "progress": a part from 0 to 1 or a percentage, then
// optionally a space and a text, "attr NAME": an attribute of the task, "eta": when it wants
// to run again, in seconds since 1970 or as RFC 3339, "status": what became of it as Disbatch
// numbers it, 1 for well and from 2 on with errors, and "result": all
// that stands behind the equals sign, byte for byte, as in
//
//	progress=0.4 reading input
//	progress=40% reading input
//	attr phase=reading
//	eta=2027-01-15T08:00:00Z
//	status=1
//	result=42
//
// The last good line counts. Progress and attributes count once the line feed is written,
// and each look is at the last 64 KiB; eta, status and result are what the file says when the
// program has ended (see [Reader.Result]). The program is not trusted: nothing is
// followed that is not a plain file, and reading never blocks.
package control

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	// Attr checks an attribute; nil takes all.
	Attr func(name, text string) error

	progress Progress
	attrs    map[string]string
	eta      time.Time
	status   int
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

// Attrs are the attributes that the program has set by the Poll before, with what it has said of each last: an empty text removes one.
// The map is the caller's.
func (r *Reader) Attrs() map[string]string { return maps.Clone(r.attrs) }

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
	modified, change syscall.Timespec
}

func stampOf(info fs.FileInfo) stamp {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}
	}
	return stamp{device: s.Dev, inode: s.Ino, size: s.Size, modified: s.Mtim, change: s.Ctim}
}

// read returns the end of the file, from the beginning of a line on, if it has
// changed since it was read last.
func (r *Reader) read() (text string, fresh bool, err error) {
	info, err := os.Lstat(r.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, err
	case !info.Mode().IsRegular():
		return "", false, fmt.Errorf("%w: %s", ErrRefused, r.Path)
	case stampOf(info) == r.seen:
		return "", false, nil
	}
	return r.reread()
}

// reread reads the last maxRead bytes, without a line that began before them. It looks
// again at what the file is: it may be another by now.
func (r *Reader) reread() (text string, fresh bool, err error) {
	file, info, err := r.open()
	if err != nil || file == nil {
		return "", false, err
	}
	defer func() { _ = file.Close() }() // nothing is written through it
	offset := max(info.Size()-maxRead, 0)
	end, err := io.ReadAll(io.NewSectionReader(file, offset, info.Size()-offset))
	if err != nil {
		return "", false, err
	}
	r.seen = stampOf(info) // from before reading: what comes meanwhile is seen next time
	if offset > 0 {
		end = end[bytes.IndexByte(end, '\n')+1:]
	}
	return string(end), true, nil
}

// open opens the file if it is there and a plain one; file is nil if it is not there.
func (r *Reader) open() (file *os.File, info fs.FileInfo, err error) {
	const flags = os.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY
	open := func() (err error) {
		file, err = os.OpenFile(r.Path, flags, 0)
		return err
	}
	if r.As == nil {
		err = open()
	} else if _, err = os.Stat(r.Path); err == nil { // taking its rights is dear, and most programs never write the file
		if err = r.As(open); err != nil {
			err = fmt.Errorf("open %s: %w", r.Path, err)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		return nil, nil, fmt.Errorf("%w: %s", ErrRefused, r.Path)
	case err != nil:
		return nil, nil, err
	}
	info, err = file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s", ErrRefused, r.Path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
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
		key = strings.TrimSpace(key)
		name, attr := strings.CutPrefix(key, "attr ")
		switch {
		case !ok:
			r.warn("line %q is not of the form key=value", clean(line, maxShown))
		case key == "progress":
			r.take(value)
		case attr:
			r.takeAttr(strings.TrimSpace(name), strings.TrimSpace(value))
		case key == resultKey, key == etaKey, key == statusKey: // at the end, by Result
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

// mostAttrs bounds how many names one program can set, or remove, of its task.
const mostAttrs = 64

func (r *Reader) takeAttr(name, text string) {
	_, known := r.attrs[name]
	var err error
	switch {
	case !known && len(r.attrs) == mostAttrs:
		err = fmt.Errorf("a program can set at most %d attributes", mostAttrs)
	case r.Attr != nil:
		err = r.Attr(name, text)
	}
	if err != nil {
		r.warn("attr %s: %v", clean(name, maxShown), err)
		return
	}
	if r.attrs == nil {
		r.attrs = map[string]string{}
	}
	r.attrs[name] = text
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
	resultKey, etaKey, statusKey = "result", "eta", "status"
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
	file, info, err := r.open()
	if err != nil || file == nil {
		return "", false, err
	}
	defer func() { _ = file.Close() }() // nothing is written through it
	offset := max(info.Size()-maxSearched, 0)
	text, ok, err = r.lastResult(io.NewSectionReader(file, offset, info.Size()-offset), offset > 0)
	if err == nil && !ok && offset > 0 {
		err = ErrResultMissed
	}
	if err != nil {
		return "", false, fmt.Errorf("%s: %w", r.Path, err)
	}
	return text, ok, nil
}

// ETA is when the program wants to run again, as Result has found it; zero if it did not say.
func (r *Reader) ETA() time.Time { return r.eta }

// Status is what the program says became of it, as Result has found it: 1 for well, 2 or more with errors; 0 if it did not say.
func (r *Reader) Status() int { return r.status }

// withErrors is the status of a program that reports something else than a status, as in Disbatch; mostStatus is the highest one.
const withErrors, mostStatus = 2, 1<<31 - 1

// parseStatus reads the number that a program reports.
func parseStatus(text string) (int, error) {
	text = strings.TrimSpace(text)
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostStatus || strconv.Itoa(n) != text {
		return withErrors, fmt.Errorf("want 1, or a whole number from 2 on for errors, not %q: it counts as 2", clean(text, maxShown))
	}
	return n, nil
}

// latestETA is the end of the year 9999.
const latestETA = 253402300799

// parseETA reads seconds since 1970, or RFC 3339.
func parseETA(text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		seconds, bad := strconv.ParseFloat(text, 64)
		if err = bad; err == nil {
			at = time.UnixMicro(int64(min(max(seconds, 0), latestETA+1) * 1e6)) // NaN becomes some time before 1970
		}
	}
	if err != nil || at.Unix() < 1 || at.Unix() > latestETA {
		return at, fmt.Errorf("want seconds since 1970 or RFC 3339, as in 1800000000 or 2027-01-15T08:00:00Z, not %q", clean(text, maxShown))
	}
	return at.UTC(), nil
}

// lastResult finds the last result in a text, which may begin within a line, and the last eta and status.
func (r *Reader) lastResult(text io.Reader, within bool) (result string, ok bool, err error) {
	in := bufio.NewReaderSize(text, MaxResult+maxShown)
	var tooLong error
	for whole := !within; ; {
		line, err := in.ReadSlice('\n')
		if whole && (err == nil || errors.Is(err, io.EOF)) {
			r.takeLast(line)
		}
		if value, is := valueOf(line, resultKey); whole && is {
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

// takeLast takes a whole line of which the last one counts.
func (r *Reader) takeLast(line []byte) {
	if value, is := valueOf(line, etaKey); is {
		if at, bad := parseETA(string(value)); bad != nil {
			r.warn("eta=%s: %v", clean(string(value), maxShown), bad)
		} else {
			r.eta = at
		}
	}
	if value, is := valueOf(line, statusKey); is {
		var bad error
		if r.status, bad = parseStatus(string(value)); bad != nil {
			r.warn("status=%s: %v", clean(string(value), maxShown), bad)
		}
	}
}

// valueOf returns what stands behind the equals sign in a line of that key.
func valueOf(line []byte, of string) ([]byte, bool) {
	key, value, ok := bytes.Cut(line, []byte("="))
	return bytes.TrimSuffix(value, []byte("\n")), ok && string(bytes.TrimSpace(key)) == of
}
