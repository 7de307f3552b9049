package fetch

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"

	"github.com/klauspost/compress/zip"
	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archiver/v4"

	"github.com/tdf-go/tdf/task"
)

// decoderMemory bounds what a zstd frame may ask for.
const decoderMemory = 64 << 20

// unpack makes the program's tree from the staged file and checks that it can
// be run.
func (f *Fetcher) unpack(ctx context.Context, s *stage, src task.Source, program string, note func(string)) error {
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
	if src.Format == task.FormatZip {
		verb = "unzipping"
	}
	if src.Format != task.FormatScript {
		note(fmt.Sprintf("%s %s to ./%s/", verb, src, program))
	}
	opts := f.opts
	if src.Kind == task.SourceBlob { // no stranger has packed it, and the other limits hold
		opts.maxRatio = math.MaxInt
	}
	if err := unpackFile(ctx, root, file, src.Format, &opts); err != nil {
		return fmt.Errorf("unpacking %s: %w", src, err)
	}
	if err := runnable(root.FS(), program); err != nil {
		return fmt.Errorf("%w%s", err, nestedHint(root))
	}
	return nil
}

// survive turns a panic into an error. The decoders are foreign code on hostile input: a panic in
// one of them ends this fetch, not the worker with all its tasks.
func survive(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: the decoder panicked: %v", errArchive, p)
	}
}

// unpackFile writes the content of file below root.
func unpackFile(ctx context.Context, root *os.Root, file *os.File, format task.SourceFormat, o *Options) (err error) {
	defer survive(&err)
	fi, err := file.Stat()
	if err != nil {
		return err
	}
	b := &budget{opts: o, archive: fi.Size()}
	t := newTree(root, b)
	switch format {
	case task.FormatScript:
		err = t.writeFile(ctx, runFile, 0o755, file)
	case task.FormatZip:
		err = unzip(ctx, t, file, fi.Size())
	default:
		err = untar(ctx, t, file, format)
	}
	if err != nil {
		return archiveError(ctx, err)
	}
	return t.makeLinks()
}

// archiveError makes the decoders' own errors match errArchive.
func archiveError(ctx context.Context, err error) error {
	var own *limitError
	var disk *fs.PathError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &own):
		return own
	case errors.Is(err, errArchive), errors.As(err, &disk):
		return err
	default:
		return fmt.Errorf("%w: it is damaged, truncated or of another type: %w", errArchive, err)
	}
}

func untar(ctx context.Context, t *tree, file io.Reader, format task.SourceFormat) error {
	return entries(ctx, t.budget, file, format, func(hdr *tar.Header, content io.Reader) error {
		return t.addTar(ctx, hdr, content)
	})
}

// entries calls f for what an archive holds, one after the other.
func entries(
	ctx context.Context, b *budget, file io.Reader, format task.SourceFormat, f func(*tar.Header, io.Reader) error,
) error {
	r, err := decompress(file, format)
	if err != nil {
		return err
	}
	defer r.Close()
	s := &stream{r: whileAlive(ctx, r), budget: b}
	list := tar.NewReader(s)
	for {
		hdr, err := list.Next()
		if err == io.EOF { // not errors.Is, see drain
			break
		}
		if err != nil {
			return fmt.Errorf("untar: %w", err)
		}
		if err := f(hdr, list); err != nil {
			return err
		}
	}
	// The tar reader takes a missing end for an end. With the two blocks of
	// zeros that stand there it does not need to read so far.
	if s.ended {
		return fmt.Errorf("%w: it is truncated: the end of the tar file is missing", errArchive)
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
				return fmt.Errorf("%w: data follow the end of the tar file", errArchive)
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

// decoders are for the archives that are compressed tar files.
var decoders = map[task.SourceFormat]archiver.Decompressor{
	task.FormatTarGz:  archiver.Gz{},
	task.FormatTarBz2: archiver.Bz2{},
	task.FormatTarXz:  archiver.Xz{},
	task.FormatTarZst: archiver.Zstd{DecoderOptions: []zstd.DOption{
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(decoderMemory),
	}},
}

func decompress(r io.Reader, format task.SourceFormat) (io.ReadCloser, error) {
	if format == task.FormatTar {
		return io.NopCloser(r), nil
	}
	decoder, ok := decoders[format]
	if !ok {
		return nil, fmt.Errorf("%w: no decoder for %s", task.ErrInvalidFormat, format)
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

// refused makes the error for an entry that is never unpacked.
func refused(name, why string) error {
	return fmt.Errorf("%w: entry '%s' %s", errArchive, printable(name), why)
}

// addTar takes one entry of a tar file; the type flag decides, not the mode.
func (t *tree) addTar(ctx context.Context, hdr *tar.Header, content io.Reader) error {
	if hdr.Typeflag == tar.TypeXGlobalHeader { // git writes one
		return nil
	}
	if err := t.budget.addEntry(); err != nil {
		return err
	}
	switch hdr.Typeflag {
	case tar.TypeDir:
		return t.addDir(hdr.Name)
	case tar.TypeReg:
		return t.addFile(ctx, hdr.Name, hdr.FileInfo().Mode(), content)
	case tar.TypeSymlink:
		return t.addSymlink(hdr.Name, hdr.Linkname)
	case tar.TypeLink:
		return t.addHardLink(hdr.Name, hdr.Linkname)
	default:
		return refused(hdr.Name, fmt.Sprintf("is of type %q: only files, directories and links are unpacked", hdr.Typeflag))
	}
}

// addZip takes one entry of a zip file.
func (t *tree) addZip(ctx context.Context, e *zip.File) error {
	if err := t.budget.addEntry(); err != nil {
		return err
	}
	const encrypted = 0x1
	if e.Flags&encrypted != 0 {
		return refused(e.Name, "is encrypted")
	}
	// The library's decoders for other methods answer damaged data with nil.
	if e.Method != zip.Store && e.Method != zip.Deflate {
		return refused(e.Name, fmt.Sprintf("uses compression method %d: only store and deflate are unpacked", e.Method))
	}
	kind := e.Mode().Type()
	if kind == fs.ModeDir {
		return t.addDir(e.Name)
	}
	if kind != 0 && kind != fs.ModeSymlink {
		return refused(e.Name, fmt.Sprintf("is of type %v: only files, directories and links are unpacked", kind))
	}
	content, err := e.Open()
	if err != nil {
		return fmt.Errorf("open entry: %w", err)
	}
	defer func() { _ = content.Close() }() // the checksum is compared where the content ends
	if kind == 0 {
		return t.addFile(ctx, e.Name, e.Mode(), content)
	}
	target, err := io.ReadAll(io.LimitReader(content, maxPathBytes+1)) // zip keeps it as the content
	if err != nil {
		return err
	}
	return t.addSymlink(e.Name, string(target))
}

// unzip checks against the archive's size what the directory says of entries:
// if they take more than the whole file, they overlap.
func unzip(ctx context.Context, t *tree, file *os.File, size int64) error {
	dir := &zipDirectory{File: file, left: zipDirectoryBytes(t.budget.opts.MaxEntries), limit: t.budget.opts.MaxEntries}
	archive, err := zip.NewReader(dir, size)
	if err != nil {
		return fmt.Errorf("unzip: %w", err)
	}
	dir.done = true
	left := uint64(size)
	for _, e := range archive.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.CompressedSize64 > left {
			return refused(e.Name, "overlaps other entries")
		}
		left -= e.CompressedSize64
		if err := t.addZip(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// zipDirectory bounds how much of a zip file is read as its directory, which
// is kept in memory whole.
type zipDirectory struct {
	*os.File
	left  int64
	limit int
	done  bool // the directory was read, entries are being unpacked
}

// zipDirectoryBytes bounds the directory of a zip archive by its number of entries.
func zipDirectoryBytes(entries int) int64 { return 128<<10 + int64(entries)*256 }

// ReadAt implements io.ReaderAt.
func (z *zipDirectory) ReadAt(p []byte, off int64) (int, error) {
	n, err := z.File.ReadAt(p, off)
	if !z.done {
		if z.left -= int64(n); z.left < 0 {
			return 0, &limitError{of: limitEntries, most: int64(z.limit), where: "the zip directory"}
		}
	}
	return n, err
}

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
		return &limitError{of: limitEntries, most: int64(b.opts.MaxEntries)}
	}
	return nil
}

// fits refuses a file that is too large, before it is read.
func (b *budget) fits(name string, size int64) error {
	switch {
	case size > b.opts.MaxFileBytes:
		return &limitError{of: limitFileBytes, most: b.opts.MaxFileBytes, where: name}
	case b.bytes+size > b.opts.MaxBytes:
		return &limitError{of: limitBytes, most: b.opts.MaxBytes}
	}
	return nil
}

func (b *budget) addBytes(n int) error {
	if b.bytes += int64(n); b.bytes > b.opts.MaxBytes {
		return &limitError{of: limitBytes, most: b.opts.MaxBytes}
	}
	return b.checkRatio(b.bytes)
}

// addStream also catches bombs made of headers and padding: three blocks an
// entry are plenty for a tar file.
func (b *budget) addStream(n int) error {
	const perEntry, slack = 3 * 512, 1 << 20
	if b.stream += int64(n); b.stream > b.opts.MaxBytes+int64(b.opts.MaxEntries)*perEntry+slack {
		return &limitError{of: limitBytes, most: b.opts.MaxBytes}
	}
	return b.checkRatio(b.stream)
}

func (b *budget) checkRatio(n int64) error {
	if n > ratioFree && n/int64(b.opts.maxRatio) > b.archive {
		return &limitError{of: limitRatio, most: int64(b.opts.maxRatio)}
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
