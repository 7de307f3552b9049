package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tdf-go/tdf/internal/base/disk"
)

// The defaults of [Options], and how much of the lines makes a frame.
const (
	defaultMaxBytes = 64 << 20
	defaultMaxAge   = time.Hour
	frameBytes      = 4 << 20
)

// Options say how a [Writer] works. Dir and Namespace are required.
type Options struct {
	// Dir is made with mode 0700 if it is not there.
	Dir, Namespace string
	// TDF is the version of the program, for manifests.
	TDF string
	// MaxBytes and MaxAge are when a segment is sealed: after the batch that makes it so large (default 64 MiB), and so long after
	// it was begun (default an hour).
	MaxBytes int64
	MaxAge   time.Duration
	// Problem, if set, is told what is wrong with parts that others have left; they stay as they are.
	Problem func(error)
	// Now replaces time.Now in tests.
	Now func() time.Time
}

// Writer writes segments into a directory, which it shares with any number of others. It is for one goroutine.
type Writer struct {
	opt     Options
	encoder *zstd.Encoder
	part    *part
}

// part is the segment that grows.
type part struct {
	file  *os.File
	name  string
	begun time.Time
	// size is up to where the file is whole and on the disk; sum and counts are about that.
	size, raw int64
	sum       hash.Hash
	counts    Counts
	cut       int64
}

// Open makes a Writer. It makes the directory, makes sure that it can be written, and seals what others that have ended left
// there unsealed. The error wraps the system's.
func Open(opt Options) (*Writer, error) {
	if opt.MaxBytes <= 0 {
		opt.MaxBytes = defaultMaxBytes
	}
	if opt.MaxAge <= 0 {
		opt.MaxAge = defaultMaxAge
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Problem == nil {
		opt.Problem = func(error) {}
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	w := &Writer{opt: opt, encoder: encoder}
	if err := os.MkdirAll(opt.Dir, dirMode); err != nil {
		return nil, err
	}
	probe, err := os.CreateTemp(opt.Dir, ".probe-*")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, err
	}
	return w, w.recover()
}

// Write adds a batch of records and returns when they are on the disk, in a file that is in its place. After an error none of
// them counts as written, and the same call may succeed later.
func (w *Writer) Write(batch []Record) error {
	if len(batch) == 0 {
		return nil
	}
	frames, raw, counts, err := w.encode(batch)
	if err != nil {
		return err
	}
	if err := w.Tend(); err != nil {
		return err
	}
	if w.part == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	if err := w.add(frames); err != nil {
		return err
	}
	p := w.part
	p.size, p.raw = p.size+int64(len(frames)), p.raw+raw
	_, _ = p.sum.Write(frames) // it never fails
	p.counts.merge(&counts)
	if p.size >= w.opt.MaxBytes {
		return w.sealLater()
	}
	return nil
}

// sealLater seals a segment that is large enough. What it holds is safe, so that it cannot be sealed is told by the next call.
func (w *Writer) sealLater() error {
	if err := w.seal(); err != nil {
		w.opt.Problem(err)
	}
	return nil
}

// encode makes frames of the records.
func (w *Writer) encode(batch []Record) (frames []byte, size int64, counts Counts, err error) {
	var lines []byte
	for i := range batch {
		text, err := batch[i].Line()
		if err != nil {
			return nil, 0, counts, err
		}
		lines = append(lines, text...)
		size += int64(len(text))
		counts.add(&batch[i].Head)
		if len(lines) >= frameBytes || i == len(batch)-1 {
			frames = w.encoder.EncodeAll(lines, frames)
			lines = lines[:0]
		}
	}
	return frames, size, counts, nil
}

// begin begins a segment, and looks for abandoned ones.
func (w *Writer) begin() error {
	if err := w.recover(); err != nil {
		return err
	}
	for {
		name := newName(w.opt.Namespace, w.opt.Now())
		file, err := os.OpenFile(filepath.Join(w.opt.Dir, name+partEnd), os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
		if err != nil {
			return err
		}
		mine, err := lock(file)
		if err == nil && mine {
			err = disk.SyncDir(w.opt.Dir)
		}
		if err != nil {
			return errors.Join(err, file.Close(), removed(file.Name()))
		}
		if mine {
			w.part = &part{file: file, name: name, begun: w.opt.Now(), sum: sha256.New()}
			return nil
		}
		_ = file.Close() // somebody took the empty file for one that was left
	}
}

// add appends frames to the part. If they cannot be made safe what was added is taken away again, and if that cannot be done
// either the part is left to whoever opens the directory next.
func (w *Writer) add(frames []byte) error {
	p := w.part
	_, err := p.file.WriteAt(frames, p.size)
	written := err == nil
	if written {
		err = p.file.Sync()
	}
	if err == nil {
		var there bool
		if there, err = inPlace(p.file); err == nil && !there {
			err = fmt.Errorf("%s was removed while it was written", p.file.Name())
		}
	}
	if err == nil {
		return nil
	}
	cut := p.file.Truncate(p.size)
	if written || cut != nil { // what the disk has of it is not known
		w.abandon()
	}
	return errors.Join(err, cut)
}

// abandon leaves the part, and with it the lock.
func (w *Writer) abandon() {
	_ = w.part.file.Close() // what counts is on the disk
	w.part = nil
}

// Tend seals the segment if it is old or large enough. Call it now and then while there is nothing to write.
func (w *Writer) Tend() error {
	if w.part == nil || w.part.size < w.opt.MaxBytes && w.opt.Now().Sub(w.part.begun) < w.opt.MaxAge {
		return nil
	}
	return w.seal()
}

// Close seals the segment and ends the writer.
func (w *Writer) Close() (err error) {
	if w.part != nil {
		if err = w.seal(); err != nil {
			w.abandon()
		}
	}
	return errors.Join(err, w.encoder.Close())
}

// seal completes the segment. After an error it still grows.
func (w *Writer) seal() error {
	err := w.part.seal(&w.opt)
	if err == nil {
		w.abandon()
	}
	return err
}

// seal writes the manifest and gives the file its name; one without records is removed. It can be repeated.
func (p *part) seal(opt *Options) error {
	if p.counts.Records == 0 {
		return removed(p.file.Name())
	}
	m := Manifest{
		Format: Version, Namespace: opt.Namespace, Segment: p.name, SHA256: hex.EncodeToString(p.sum.Sum(nil)),
		Bytes: p.size, Uncompressed: p.raw, Counts: p.counts, Cut: p.cut, Sealed: opt.Now().UTC().Truncate(time.Second), TDF: opt.TDF,
	}
	if err := m.write(opt.Dir); err != nil {
		return err
	}
	if err := os.Rename(p.file.Name(), filepath.Join(opt.Dir, p.name)); err != nil {
		return err
	}
	return disk.SyncDir(opt.Dir)
}
