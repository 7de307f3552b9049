package spool

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// version of the form of files.
const version = 1

// maxHeader bounds the first line of a file, in bytes: a name of maxName bytes,
// each written as \u00xx, and the rest.
const maxHeader = 8 << 10

// header is the first line of a file.
type header struct {
	Version int       `json:"spool"`
	Name    string    `json:"name"`
	Order   uint64    `json:"order"`
	Stored  time.Time `json:"stored"`
	Size    int64     `json:"size"`
	SHA256  string    `json:"sha256"`
}

// headLine makes the first line of a file.
func headLine(name string, order uint64, data []byte) ([]byte, error) {
	sum := sha256.Sum256(data)
	line, err := json.Marshal(header{
		Version: version, Name: name, Order: order, Stored: time.Now().UTC(),
		Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]),
	})
	if err != nil {
		return nil, fmt.Errorf("encode spool entry: %w", err)
	}
	return append(line, '\n'), nil
}

// header reads the first line of a file only.
func (s *Spool) header(file string) (header, error) {
	f, err := s.open(file)
	if err != nil {
		return header{}, err
	}
	defer f.Close() //nolint:errcheck // only read
	return s.readHeader(file, bufio.NewReader(f))
}

// open opens without waiting, so that a FIFO put there does not block.
func (s *Spool) open(file string) (*os.File, error) {
	f, err := s.root.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, s.damaged(file, "cannot be opened", err)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		return f, nil
	}
	return nil, errors.Join(s.damaged(file, "is no regular file", err), f.Close())
}

func (s *Spool) readHeader(file string, r *bufio.Reader) (header, error) {
	var h header
	line, err := readLine(r)
	if err != nil {
		return h, s.damaged(file, "has no first line", err)
	}
	err = json.Unmarshal(line, &h)
	switch {
	case err != nil:
		return h, s.damaged(file, "is none of the spool", err)
	case h.Version != version:
		return h, s.damaged(file, fmt.Sprintf("is of version %d, known is %d", h.Version, version), nil)
	case checkName(h.Name) != nil || fileName(h.Name)+ending != file:
		return h, s.damaged(file, "has the name of another entry", nil)
	}
	return h, nil
}

func readLine(r io.ByteReader) ([]byte, error) {
	var line []byte
	for len(line) < maxHeader {
		c, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		if c == '\n' {
			return line, nil
		}
		line = append(line, c)
	}
	return nil, fmt.Errorf("longer than %d bytes", maxHeader)
}

// read copies the data of a file to w and compares size and hash.
func (s *Spool) read(file string, w io.Writer) (header, error) {
	f, err := s.open(file)
	if err != nil {
		return header{}, err
	}
	defer f.Close() //nolint:errcheck // only read
	r := bufio.NewReader(f)
	h, err := s.readHeader(file, r)
	if err != nil {
		return h, err
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, hash), r)
	switch {
	case err != nil:
		return h, s.damaged(file, "cannot be read", err)
	case n != h.Size:
		return h, s.damaged(file, fmt.Sprintf("holds %d bytes of %d", n, h.Size), nil)
	case hex.EncodeToString(hash.Sum(nil)) != h.SHA256:
		return h, s.damaged(file, "does not hold what was written", nil)
	}
	return h, nil
}

func (s *Spool) damaged(file, problem string, err error) error {
	return &DamagedError{Path: filepath.Join(s.dir, file), Problem: problem, Err: err}
}
