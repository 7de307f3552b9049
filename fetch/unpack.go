package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archiver/v4"
)

// decoderMemory bounds what a zstd frame may ask for.
const decoderMemory = 64 << 20

// unpack makes the program's tree from the staged file and checks that it can
// be run.
func (f *Fetcher) unpack(ctx context.Context, s *stage, src Source, program string, note func(string)) error {
	if err := s.root.Mkdir(stagedTree, 0o755); err != nil {
		return fmt.Errorf("create staging directory: %w", err)
	}
	root, err := s.root.OpenRoot(stagedTree)
	if err != nil {
		return fmt.Errorf("open staging directory: %w", err)
	}
	defer root.Close()
	file, err := s.root.Open(stagedFile)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	verb := "untaring"
	if src.Format == FormatZip {
		verb = "unzipping"
	}
	if src.Format != FormatScript {
		note(fmt.Sprintf("%s %s to ./%s/", verb, src.shown(), program))
	}
	if err := unpackFile(ctx, root, file, src.Format, &f.opts); err != nil {
		return fmt.Errorf("unpacking %s: %w", src.shown(), err)
	}
	if err := runnable(root.FS(), program); err != nil {
		return fmt.Errorf("%w%s", err, nestedHint(root))
	}
	return nil
}

// unpackFile writes the content of file below root. The decoders are foreign
// code on hostile input: a panic in one of them ends this fetch, not the
// worker with all its tasks.
func unpackFile(ctx context.Context, root *os.Root, file *os.File, format Format, o *Options) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the decoder panicked: %v", ErrArchive, p)
		}
	}()
	fi, err := file.Stat()
	if err != nil {
		return err
	}
	b := &budget{opts: o, archive: fi.Size()}
	t := newTree(root, b)
	switch format {
	case FormatScript:
		err = t.writeFile(ctx, runFile, 0o755, file)
	case FormatZip:
		err = unzip(ctx, t, file, fi.Size())
	default:
		err = untar(ctx, t, file, format)
	}
	if t.err != nil {
		err = t.err
	}
	if err != nil {
		return archiveError(ctx, err)
	}
	return t.makeLinks()
}

// archiveError makes the decoders' own errors match ErrArchive.
func archiveError(ctx context.Context, err error) error {
	var own *LimitError
	var disk *fs.PathError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &own):
		return own
	case errors.Is(err, ErrArchive), errors.As(err, &disk):
		return err
	default:
		return fmt.Errorf("%w: it is damaged, truncated or of another type: %w", ErrArchive, err)
	}
}

func untar(ctx context.Context, t *tree, file io.Reader, format Format) error {
	r, err := decompress(file, format)
	if err != nil {
		return err
	}
	defer r.Close()
	s := &stream{r: whileAlive(ctx, r), budget: t.budget}
	if err := (archiver.Tar{}).Extract(ctx, s, t.keep(t.addTar)); err != nil {
		return fmt.Errorf("untar: %w", err)
	}
	// The tar reader takes a missing end for an end. With the two blocks of
	// zeros that stand there it does not need to read so far.
	if s.ended {
		return fmt.Errorf("%w: it is truncated: the end of the tar file is missing", ErrArchive)
	}
	return drain(s)
}

// drain reads to the very end, where the decompressor compares its checksum.
func drain(s *stream) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := s.Read(buf)
		for _, c := range buf[:n] {
			if c != 0 {
				return fmt.Errorf("%w: data follow the end of the tar file", ErrArchive)
			}
		}
		// Not errors.Is: a decoder's error that wraps io.EOF is a truncation.
		if s.ended {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func decompress(r io.Reader, format Format) (io.ReadCloser, error) {
	var decoder archiver.Decompressor
	switch format {
	case FormatTar:
		return io.NopCloser(r), nil
	case FormatTarGz:
		decoder = archiver.Gz{}
	case FormatTarBz2:
		decoder = archiver.Bz2{}
	case FormatTarXz:
		decoder = archiver.Xz{}
	case FormatTarZst:
		decoder = archiver.Zstd{DecoderOptions: []zstd.DOption{
			zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(decoderMemory),
		}}
	default:
		return nil, fmt.Errorf("%w: no decoder for %s", ErrInvalidType, format)
	}
	opened, err := decoder.OpenReader(r)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return opened, nil
}

// nestedHint explains the usual reason for a missing run.sh: the archive was
// made of a directory, not of its content.
func nestedHint(root *os.Root) string {
	found, err := fs.Glob(root.FS(), "*/"+runFile)
	if err != nil || len(found) == 0 {
		return ""
	}
	if _, err := root.Lstat(runFile); err == nil {
		return ""
	}
	return fmt.Sprintf(" (there is '%s': pack the content of '%s', not the directory)",
		printable(found[0]), printable(path.Dir(found[0])))
}
