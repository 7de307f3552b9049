package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"strings"
)

// download brings the source's file into the stage and completes m with its
// size and hash, which a pin must equal.
func (f *Fetcher) download(ctx context.Context, s *stage, src Source, m *manifest, note func(string)) error {
	sink, err := newSink(s.root, f.opts.MaxDownloadBytes)
	if err != nil {
		return err
	}
	if src.Kind == KindHTTP {
		note(fmt.Sprintf("downloading %s from %s", src.shown(), redact(src.Location)))
		err = f.httpGet(ctx, src, sink)
	} else {
		from := strings.TrimPrefix(src.Location, rsyncPrefix)
		note(fmt.Sprintf("rsyncing %s from %s", src.shown(), redact(from)))
		err = f.rsync(ctx, s, src, sink)
	}
	if err = errors.Join(err, sink.file.Close()); err != nil {
		return err
	}
	m.SHA256, m.Bytes = hex.EncodeToString(sink.hash.Sum(nil)), sink.n
	if src.SHA256 != "" && src.SHA256 != m.SHA256 {
		return fmt.Errorf("%w: %s has sha256 %s, the task pins %s", ErrChecksum, src.shown(), m.SHA256, src.SHA256)
	}
	return nil
}

func (f *Fetcher) rsync(ctx context.Context, s *stage, src Source, sink *sink) error {
	if src.Kind == KindLocal {
		return f.copyLocal(ctx, src.Path, sink)
	}
	if err := f.runRsync(ctx, s, src); err != nil {
		return err
	}
	name := path.Join(rsyncStage, path.Base(src.File))
	if fi, err := s.root.Lstat(name); err != nil || !fi.Mode().IsRegular() {
		return fmt.Errorf("rsync transferred nothing: %s is no regular file or larger than %d bytes (%s)",
			src.shown(), f.opts.MaxDownloadBytes, setting(limitDownload))
	}
	file, err := s.root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return copyContext(ctx, sink, file)
}

// sink is the staged file: it counts, hashes and limits what is written.
type sink struct {
	file *os.File
	hash hash.Hash
	n    int64
	max  int64
}

func newSink(root *os.Root, limit int64) (*sink, error) {
	file, err := root.OpenFile(stagedFile, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("stage download: %w", err)
	}
	return &sink{file: file, hash: sha256.New(), max: limit}, nil
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	if s.n+int64(len(p)) > s.max {
		return 0, &LimitError{Option: limitDownload, Limit: s.max}
	}
	n, err := s.file.Write(p)
	s.hash.Write(p[:n])
	s.n += int64(n)
	return n, err
}

// reset empties the sink for another try.
func (s *sink) reset() error {
	if s.n == 0 {
		return nil
	}
	s.hash.Reset()
	s.n = 0
	_, err := s.file.Seek(0, io.SeekStart)
	return errors.Join(err, s.file.Truncate(0))
}

// copyContext is io.Copy that looks at the context between two reads.
func copyContext(ctx context.Context, w io.Writer, r io.Reader) error {
	_, err := io.Copy(w, whileAlive(ctx, r))
	return err
}

// whileAlive reads from r until ctx ends.
func whileAlive(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
