package capture

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"sync"
)

// Excerpt keeps head and tail of a stream with its size and SHA-256. Its methods
// may be called at the same time; it needs no closing.
type Excerpt struct {
	mu    sync.Mutex
	limit int
	// data is the stream as long as it fits. Afterwards the part behind the head is
	// a ring with the oldest byte at oldest.
	data   []byte
	oldest int
	size   int64
	// sum is there from the first byte that did not fit: until then data has it all,
	// and hashing can wait for the end.
	sum hash.Hash
}

// NewExcerpt keeps at most limit bytes, a negative one being 0. Memory is taken
// as bytes come.
func NewExcerpt(limit int64) *Excerpt {
	return &Excerpt{limit: int(max(limit, 0))}
}

// Write never fails and never keeps p.
func (e *Excerpt) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.size += int64(len(p))
	fits := min(len(p), e.limit-len(e.data))
	if fits > 0 {
		e.fill(p[:fits])
	}
	if fits < len(p) {
		e.overflow(p[fits:])
	}
	return len(p), nil
}

// fill appends p, which fits, and never allocates beyond the limit.
func (e *Excerpt) fill(p []byte) {
	if need := len(e.data) + len(p); need > cap(e.data) {
		grown := make([]byte, len(e.data), min(max(need, 2*cap(e.data)), e.limit))
		copy(grown, e.data)
		e.data = grown
	}
	e.data = append(e.data, p...)
}

// overflow puts p over the oldest bytes of the tail; data is full.
func (e *Excerpt) overflow(p []byte) {
	if e.sum == nil {
		e.sum = sha256.New()
		e.sum.Write(e.data)
	}
	e.sum.Write(p)
	ring := e.data[e.head():]
	if len(p) >= len(ring) {
		copy(ring, p[len(p)-len(ring):])
		e.oldest = 0
		return
	}
	n := copy(ring[e.oldest:], p)
	copy(ring, p[n:])
	e.oldest = (e.oldest + len(p)) % len(ring)
}

func (e *Excerpt) head() int { return e.limit - e.limit/2 }

// appendTail appends at most limit bytes of the tail from its byte skip on.
func (e *Excerpt) appendTail(b []byte, skip, limit int) []byte {
	ring := e.data[e.head():]
	for _, part := range [2][]byte{ring[e.oldest:], ring[:e.oldest]} {
		part = part[min(skip, len(part)):]
		n := min(limit, len(part))
		b = append(b, part[:n]...)
		skip, limit = max(skip-len(ring)+e.oldest, 0), limit-n
	}
	return b
}

// Size is the number of bytes written so far.
func (e *Excerpt) Size() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.size
}

// From returns bytes from offset on that are still kept, at most limit, and the
// offset of the first one, which is greater than offset if bytes fell out. One
// call never joins bytes from both sides of a gap: go on from at + len(data).
func (e *Excerpt) From(offset int64, limit int) (data []byte, at int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	offset, limit = max(offset, 0), max(limit, 0)
	kept := e.data
	if e.sum != nil {
		kept = e.data[:e.head()]
	}
	if offset < int64(len(kept)) {
		kept = kept[offset:]
		return slices.Clone(kept[:min(limit, len(kept))]), offset
	}
	if e.sum == nil {
		return nil, offset
	}
	begin := e.size - int64(e.limit/2)
	offset = max(offset, begin)
	if offset >= e.size {
		return nil, offset
	}
	return e.appendTail(nil, int(offset-begin), limit), offset
}

// Captured returns what there is so far.
func (e *Excerpt) Captured() Captured {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.captured()
	if !c.Truncated {
		c.Data = slices.Clone(c.Data) // the next Write may turn it into a ring
	}
	return c
}

// hashOfNothing is that of most streams.
const hashOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// captured is Captured with Data that is good until the next Write only.
func (e *Excerpt) captured() Captured {
	if e.size == 0 {
		return Captured{SHA256: hashOfNothing}
	}
	if e.sum == nil {
		sum := sha256.Sum256(e.data)
		return Captured{Data: e.data, Size: e.size, SHA256: hex.EncodeToString(sum[:])}
	}
	marker := Marker(e.size - int64(e.limit))
	data := make([]byte, 0, e.limit+len(marker))
	data = append(append(data, e.data[:e.head()]...), marker...)
	return Captured{
		Data:      e.appendTail(data, 0, e.limit),
		Size:      e.size,
		SHA256:    hex.EncodeToString(e.sum.Sum(nil)),
		Truncated: true,
	}
}
