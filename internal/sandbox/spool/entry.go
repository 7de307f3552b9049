package spool

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/disk"
)

// Put stores data under a name: 1 to 1024 bytes of UTF-8. An entry of that name
// is replaced and becomes the newest. When Put returns nil, the entry outlives
// a crash; else the one before it may still be there, but never half of one.
// The error matches syscall.ENOSPC if the disk is full.
func (s *Spool) Put(name string, data []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	order, err := s.order()
	if err != nil {
		return err
	}
	line, err := headLine(name, order, data)
	if err != nil {
		return err
	}
	temp := tempPrefix + strconv.FormatUint(order, 10)
	if err := s.place(temp, fileName(name)+ending, line, data); err != nil {
		_ = s.root.Remove(temp) // if that fails too, Open will do it
		return s.explain(name, len(data), err)
	}
	return nil
}

// place writes line and data durably aside and renames them.
func (s *Spool) place(temp, file string, line, data []byte) error {
	if err := disk.WriteNew(s.root, temp, 0o600, line, data); err != nil {
		return err
	}
	if err := s.root.Rename(temp, file); err != nil {
		return err
	}
	return disk.SyncIn(s.root, ".")
}

func (s *Spool) explain(name string, size int, err error) error {
	if disk.Full(err) {
		return fmt.Errorf("the disk of spool_dir '%s' is full, '%s' of %d bytes is not stored: make room: %w",
			s.dir, clean.Line(name, 0), size, err)
	}
	return fmt.Errorf("store '%s' in the spool: %w", clean.Line(name, 0), err)
}

// Remove deletes an entry that was delivered. A missing entry is not an error.
func (s *Spool) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := s.use(); err != nil {
		return err
	}
	err := s.root.Remove(fileName(name) + ending)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = disk.SyncIn(s.root, ".")
	}
	if err != nil {
		return fmt.Errorf("remove '%s' from the spool: %w", clean.Line(name, 0), err)
	}
	return nil
}

// Entry is one thing to deliver.
type Entry struct {
	// Name is what it was put under.
	Name string
	// Stored is when, on the clock of this host.
	Stored time.Time
	// Size is that of the data, in bytes.
	Size int64

	order uint64
	spool *Spool
}

// Data reads the entry. The error is a [DamagedError] if it was removed or has
// become unreadable since All.
func (e *Entry) Data() ([]byte, error) {
	if err := e.spool.use(); err != nil {
		return nil, err
	}
	var data bytes.Buffer
	if _, err := e.spool.read(fileName(e.Name)+ending, &data); err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

// All lists the entries, oldest first. It reads each of them once, so that what
// it lists is whole, but keeps none in memory. Files that are no whole entries
// are left out and left alone; the error joins one [DamagedError] for each, and
// the entries are valid beside it.
func (s *Spool) All() ([]Entry, error) {
	if err := s.use(); err != nil {
		return nil, err
	}
	files, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("look into spool: %w", err)
	}
	entries, problems := s.look(files)
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.order, b.order) })
	return entries, errors.Join(problems...)
}

func (s *Spool) look(files []fs.DirEntry) (entries []Entry, problems []error) {
	for _, f := range files {
		switch file := f.Name(); {
		case file == lockFile || isTemp(file):
		case !isEntry(file):
			problems = append(problems, s.damaged(file, "does not belong to the spool", nil))
		default:
			h, err := s.read(file, io.Discard)
			switch {
			case errors.Is(err, fs.ErrNotExist): // removed just now
			case err != nil:
				problems = append(problems, err)
			default:
				entries = append(entries, Entry{Name: h.Name, Stored: h.Stored, Size: h.Size, order: h.Order, spool: s})
			}
		}
	}
	return entries, problems
}

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
	return nil, errors.Join(s.damaged(file, "is not a regular file", err), f.Close())
}

func (s *Spool) readHeader(file string, r *bufio.Reader) (header, error) {
	var h header
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = fmt.Errorf("longer than %d bytes", maxHeader)
	}
	if err != nil {
		return h, s.damaged(file, "has no first line", err)
	}
	err = json.Unmarshal(line, &h)
	switch {
	case err != nil:
		return h, s.damaged(file, "does not belong to the spool", err)
	case h.Version != version:
		return h, s.damaged(file, fmt.Sprintf("is of version %d, known is %d", h.Version, version), nil)
	case checkName(h.Name) != nil || fileName(h.Name)+ending != file:
		return h, s.damaged(file, "has the name of another entry", nil)
	}
	return h, nil
}

// read copies the data of a file to w and compares size and hash. Without w it reads the
// first line only.
func (s *Spool) read(file string, w io.Writer) (header, error) {
	f, err := s.open(file)
	if err != nil {
		return header{}, err
	}
	defer f.Close() //nolint:errcheck // only read
	r := bufio.NewReaderSize(f, maxHeader)
	h, err := s.readHeader(file, r)
	if err != nil || w == nil {
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
