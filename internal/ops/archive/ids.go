package archive

// IDs is a set of ids. It takes a bit for each id of those ranges of 65,536 from which it has one.
type IDs struct {
	chunks map[int64]*[chunkWords]uint64
	n      int64
}

const (
	chunkBits  = 16
	chunkWords = 1 << chunkBits / 64
)

// Add puts an id into the set, and reports whether it was not there.
func (s *IDs) Add(id int64) bool {
	if s.chunks == nil {
		s.chunks = map[int64]*[chunkWords]uint64{}
	}
	c := s.chunks[id>>chunkBits]
	if c == nil {
		c = new([chunkWords]uint64)
		s.chunks[id>>chunkBits] = c
	}
	word, bit := place(id)
	if c[word]&bit != 0 {
		return false
	}
	c[word] |= bit
	s.n++
	return true
}

// Has reports whether an id is in the set.
func (s *IDs) Has(id int64) bool {
	c := s.chunks[id>>chunkBits]
	if c == nil {
		return false
	}
	word, bit := place(id)
	return c[word]&bit != 0
}

// Len is how many ids there are.
func (s *IDs) Len() int64 { return s.n }

func place(id int64) (word int, bit uint64) {
	low := id & (1<<chunkBits - 1)
	return int(low / 64), 1 << (low % 64)
}
