package fetch

import "io"

// ratioFree is how much may be unpacked before the ratio counts: small files
// compress well without being bombs.
const ratioFree = 10 << 20

// budget counts what one archive really unpacks to, whatever it declares.
type budget struct {
	opts    *Options
	archive int64 // size of the archive file
	entries int
	bytes   int64 // written into files
	stream  int64 // out of the decompressor, with headers and padding
}

func (b *budget) addEntry() error {
	if b.entries++; b.entries > b.opts.MaxEntries {
		return &LimitError{Option: limitEntries, Limit: int64(b.opts.MaxEntries)}
	}
	return nil
}

func (b *budget) addBytes(n int) error {
	if b.bytes += int64(n); b.bytes > b.opts.MaxBytes {
		return &LimitError{Option: limitBytes, Limit: b.opts.MaxBytes}
	}
	return b.checkRatio(b.bytes)
}

// addStream also catches bombs made of headers and padding: three blocks an
// entry are plenty for a tar file.
func (b *budget) addStream(n int) error {
	const perEntry, slack = 3 * 512, 1 << 20
	if b.stream += int64(n); b.stream > b.opts.MaxBytes+int64(b.opts.MaxEntries)*perEntry+slack {
		return &LimitError{Option: limitBytes, Limit: b.opts.MaxBytes}
	}
	return b.checkRatio(b.stream)
}

func (b *budget) checkRatio(n int64) error {
	if n > ratioFree && n/int64(b.opts.MaxRatio) > b.archive {
		return &LimitError{Option: limitRatio, Limit: int64(b.opts.MaxRatio)}
	}
	return nil
}

// stream is the tar stream between decompressor and tar reader.
type stream struct {
	r      io.Reader
	budget *budget
	ended  bool // the reader was told that there is no more
}

// Read implements io.Reader; it never gives data and io.EOF together, so that
// ended is exact.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if limit := s.budget.addStream(n); limit != nil {
		return 0, limit
	}
	if n > 0 && err == io.EOF {
		err = nil
	}
	s.ended = s.ended || err == io.EOF
	return n, err
}
