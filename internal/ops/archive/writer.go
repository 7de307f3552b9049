// Package archive keeps archived tasks that have left Redis, or are to leave it, in files of a directory. It knows no Redis.
//
//	DIR/NAMESPACE-TIME-RANDOM.jsonl.zst                  a segment, complete: zstd frames of JSON Lines, one task a line
//	DIR/NAMESPACE-TIME-RANDOM.jsonl.zst.manifest.json    what is in it, and its checksum
//	DIR/NAMESPACE-TIME-RANDOM.jsonl.zst.part             a segment that grows; its writer holds a lock (flock) on it
//	DIR/NAMESPACE-EPOCH.before.json                      which tasks had left Redis before this directory was begun
//
// A batch of tasks is written as whole frames, each with its checksum, and is on the disk when [Writer.Write] returns. To seal a
// segment the manifest is written first and the file renamed then: whatever happens in between leaves an unlocked part. The
// next writer that opens the directory cuts off an incomplete frame and seals the part.
//
// The same task may be there more than once: a copy made before it left Redis, or one made twice because a server was killed
// between copy and removal. Of those with the same id and time of creation the one with the highest revision counts.
package archive

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
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
	opt.MaxBytes, opt.MaxAge = cmp.Or(opt.MaxBytes, defaultMaxBytes), cmp.Or(opt.MaxAge, defaultMaxAge)
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
	frames, raw, err := w.encode(batch)
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
	for i := range batch {
		p.counts.add(&batch[i].Head)
	}
	if err := w.Tend(); err != nil { // the records in it are safe
		w.opt.Problem(err)
	}
	return nil
}

// encode makes frames of the records; size is that of their lines.
func (w *Writer) encode(batch []Record) (frames []byte, size int64, err error) {
	var lines []byte
	for i := range batch {
		text, err := batch[i].Line()
		if err != nil {
			return nil, 0, err
		}
		lines = append(lines, text...)
		size += int64(len(text))
		if len(lines) >= frameBytes || i == len(batch)-1 {
			frames = w.encoder.EncodeAll(lines, frames)
			lines = lines[:0]
		}
	}
	return frames, size, nil
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

// add appends frames to the part. If they cannot be synced, it truncates the part to what it was; if that fails too, it leaves
// the part to the next writer that opens the directory.
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

// recover seals the parts of the namespace that nobody has locked: their writers have ended. What is wrong with one of them is
// told, and it stays.
func (w *Writer) recover() error {
	_, parts, err := names(w.opt.Dir, w.opt.Namespace)
	if err != nil {
		return err
	}
	for _, name := range parts {
		if err := w.take(name); err != nil {
			w.opt.Problem(err)
		}
	}
	return nil
}

// take seals a part unless somebody has it.
func (w *Writer) take(name string) error {
	file, err := os.OpenFile(filepath.Join(w.opt.Dir, name+partEnd), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody was first
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was made safe before
	if mine, err := lock(file); err != nil || !mine {
		return err
	}
	p := &part{file: file, name: name}
	if err := p.read(); err != nil {
		return err
	}
	return p.seal(&w.opt)
}

// read counts the whole frames of a part that was left, makes them safe, and cuts off what follows. It cuts nothing out of the
// middle: each frame was on the disk before the next one was begun, so that is damage.
func (p *part) read() error {
	text, err := io.ReadAll(p.file)
	if err != nil {
		return err
	}
	d, err := newDecoder()
	if err != nil {
		return err
	}
	defer d.zstd.Close()
	found, err := d.scan(text, func(raw []byte) error {
		p.raw += int64(len(raw))
		for line := range bytes.Lines(raw) {
			h, err := parseHead(line)
			if err != nil {
				return err
			}
			p.counts.add(&h)
		}
		return nil
	})
	if err == nil && len(found.holes) > 0 {
		err = fmt.Errorf("bytes %d to %d are no whole frame, and whole ones follow", found.holes[0][0], found.holes[0][1]-1)
	}
	if err != nil {
		return &DamageError{Path: p.file.Name(), Problem: "was left unsealed, and is damaged: " + err.Error(), Remedy: restoreRemedy}
	}
	p.size, p.cut = int64(found.whole), int64(len(text)-found.whole)
	p.sum = sha256.New()
	_, _ = p.sum.Write(text[:found.whole]) // it never fails
	if p.cut > 0 {
		err = p.file.Truncate(p.size)
	}
	return errors.Join(err, p.file.Sync())
}
