package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

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

func (d *decoder) close() { d.zstd.Close() }

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

// scan calls visit for the content of each whole frame, in order, and goes on after what is none.
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
