package archive

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/statemachine"
)

// Version is that of the lines and manifests. Readers refuse a higher one.
const Version = 1

// Head is what is known of a record without reading all of it.
type Head struct {
	V  int   `json:"v"`
	ID int64 `json:"id"`
	// Created is when the task was opened, as a text of Redis: after a flush ids begin again, and this tells tasks apart.
	Created string `json:"created"`
	// Rev is the revision at which the task was read, Epoch the one in which it was.
	Rev   int64 `json:"rev"`
	Epoch int64 `json:"epoch"`
	// Outcome is how the task ended, Archived when it was archived, as a text of Redis.
	Outcome  string `json:"outcome"`
	Archived string `json:"archived"`
}

// Record is an archived task.
type Record struct {
	Head

	// Fields are all fields of its hash in Redis, byte for byte; the values of variables are masked.
	Fields map[string]string
}

// line is the form of a record in a segment. JSON has no bytes that are no UTF-8: such values are in Base64.
type line struct {
	Head

	Fields map[string]string `json:"fields"`
	Base64 map[string]string `json:"base64,omitempty"`
}

// codedName begins the name of a field in line.Base64 that is in base64 itself.
const codedName = "="

// NewRecord makes the record of an archived task from the fields of its hash, which it keeps, but for the values of its variables:
// these may be secrets, and an archive is kept for long.
func NewRecord(id, epoch int64, outcome statemachine.State, fields map[string]string) Record {
	if text := fields["variables"]; text != "" {
		fields = maps.Clone(fields)
		fields["variables"] = clean.Values(text)
	}
	r := Record{Head: Head{V: Version, ID: id, Epoch: epoch, Outcome: string(outcome)}, Fields: fields}
	r.Created = cmp.Or(fields["created"], earliest(fields["0:open"], fields["0:blocked"]))
	r.Archived = fields[fields["round"]+":"+string(statemachine.Archived)]
	if n, err := json.Number(fields["rev"]).Int64(); err == nil {
		r.Rev = n
	}
	return r
}

// earliest is the earlier one of two moments of which one may be missing.
func earliest(a, b string) string {
	if at, bt := moment(a), moment(b); at > 0 && (bt == 0 || at <= bt) {
		return a
	}
	return cmp.Or(b, a)
}

// ArchivedAt is when the task was archived; 0 if that was not recorded.
func (h *Head) ArchivedAt() statemachine.Time { return moment(h.Archived) }

// moment is 0 for a text that is no time.
func moment(text string) statemachine.Time {
	at, err := statemachine.ParseTime(text)
	if err != nil {
		return 0
	}
	return at
}

// Line is the record as one line of JSON, with its end.
func (r *Record) Line() ([]byte, error) {
	l := line{Head: r.Head, Fields: make(map[string]string, len(r.Fields))}
	for name, value := range r.Fields {
		if utf8.ValidString(name) && utf8.ValidString(value) {
			l.Fields[name] = value
			continue
		}
		if l.Base64 == nil {
			l.Base64 = map[string]string{}
		}
		if !utf8.ValidString(name) || strings.HasPrefix(name, codedName) {
			name = codedName + base64.StdEncoding.EncodeToString([]byte(name))
		}
		l.Base64[name] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(l); err != nil {
		return nil, fmt.Errorf("task %d: %w", r.ID, err)
	}
	return out.Bytes(), nil
}

// ParseRecord reads what [Record.Line] has written.
func ParseRecord(text []byte) (Record, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return Record{}, fmt.Errorf("not the record of a task: %w", err)
	}
	if err := l.check(); err != nil {
		return Record{}, err
	}
	r := Record{Head: l.Head, Fields: l.Fields}
	if r.Fields == nil {
		r.Fields = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(l.Base64)) {
		value, err := base64.StdEncoding.DecodeString(l.Base64[name])
		if coded, is := strings.CutPrefix(name, codedName); is && err == nil {
			var plain []byte
			plain, err = base64.StdEncoding.DecodeString(coded)
			name = string(plain)
		}
		if err != nil {
			return Record{}, fmt.Errorf("task %d, field %q: %w", r.ID, name, err)
		}
		r.Fields[name] = string(value)
	}
	return r, nil
}

// parseHead reads only the head, which our own lines have in front.
func parseHead(text []byte) (Head, error) {
	var h Head
	if head, _, found := bytes.Cut(text, []byte(`,"fields":`)); found {
		text = append(slices.Clip(head), '}')
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, fmt.Errorf("not the record of a task: %w", err)
	}
	return h, h.check()
}

func (h *Head) check() error {
	switch {
	case h.V > Version:
		return fmt.Errorf("task %d has format %d, and this program knows none above %d: read it with a newer TDF", h.ID, h.V, Version)
	case h.V < 1 || h.ID < 1:
		return fmt.Errorf("not the record of a task: v is %d, id is %d", h.V, h.ID)
	}
	return nil
}

// frameMagic begins each zstd frame.
var frameMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// mostFrame is how large a frame may become when it is read, mostBlock how large one block of it, in bytes. No task has as much as
// the first; the second is the format's.
const (
	mostFrame = 8 << 30
	mostBlock = 128 << 10
)

var errFrame = errors.New("not a zstd frame")

// frameSize is the length of the frame that text begins with; io.ErrUnexpectedEOF if text ends before it does.
func frameSize(text []byte) (int, error) {
	var h zstd.Header
	if err := h.Decode(text); err != nil {
		return 0, err //nolint:wrapcheck // never shown
	}
	size := h.HeaderSize
	if h.Skippable {
		size += int(h.SkippableSize)
	}
	blocks := uint64(0)
	for last := h.Skippable; !last; blocks++ {
		if len(text) < size+3 {
			return 0, io.ErrUnexpectedEOF
		}
		block := int(text[size]) | int(text[size+1])<<8 | int(text[size+2])<<16
		last = block&1 == 1
		length := block >> 3
		switch block >> 1 & 3 {
		case 1: // one byte, repeated
			length = 1
		case 3:
			return 0, errFrame
		}
		size += 3 + length
	}
	if h.HasFCS && h.FrameContentSize > blocks*mostBlock {
		return 0, errFrame // before somebody makes room for it
	}
	if h.HasCheckSum {
		size += 4
	}
	if len(text) < size {
		return 0, io.ErrUnexpectedEOF
	}
	return size, nil
}

// decoder takes a segment apart. It is for one goroutine.
type decoder struct {
	zstd *zstd.Decoder
	raw  []byte
}

func newDecoder() (*decoder, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostFrame), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return &decoder{zstd: d}, nil
}

// frame is the content of the frame that text begins with, valid until the next call, and its length.
func (d *decoder) frame(text []byte) (raw []byte, size int, err error) {
	if size, err = frameSize(text); err != nil {
		return nil, 0, err
	}
	if d.raw, err = d.zstd.DecodeAll(text[:size], d.raw[:0]); err != nil {
		return nil, 0, fmt.Errorf("zstd: %w", err)
	}
	return d.raw, size, nil
}

// next is where the first whole frame after a place begins, -1 if there is none.
func (d *decoder) next(text []byte, after int) int {
	for at := after + 1; at < len(text); at++ {
		i := bytes.Index(text[at:], frameMagic)
		if i < 0 {
			return -1
		}
		at += i
		if _, _, err := d.frame(text[at:]); err == nil {
			return at
		}
	}
	return -1
}

// scanned is what a segment is made of.
type scanned struct {
	// whole is where the last whole frame ends.
	whole int
	// holes are the places before that which are no whole frames: where each begins and ends.
	holes [][2]int
}

// scan calls visit for the content of each whole frame, in order, and skips everything else.
func (d *decoder) scan(text []byte, visit func(raw []byte) error) (s scanned, err error) {
	for at := 0; at < len(text); {
		raw, size, err := d.frame(text[at:])
		if err != nil {
			next := d.next(text, at)
			if next < 0 {
				return s, nil // what is left is no frame: whole says so
			}
			s.holes = append(s.holes, [2]int{at, next})
			at = next
			continue
		}
		if err := visit(raw); err != nil {
			return s, err
		}
		at += size
		s.whole = at
	}
	return s, nil
}
