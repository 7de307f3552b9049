package fetch

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/zip"
	"github.com/mholt/archiver/v4"
)

// refused makes the error for an entry that is never unpacked.
func refused(name, why string) error {
	return fmt.Errorf("%w: entry '%s' %s", ErrArchive, printable(name), why)
}

// addTar takes one entry of a tar file; the type flag decides, not the mode.
func (t *tree) addTar(ctx context.Context, e archiver.FileInfo) error {
	hdr, ok := e.Header.(*tar.Header)
	if !ok {
		return refused(e.NameInArchive, "has no tar header")
	}
	if err := t.budget.addEntry(); err != nil {
		return err
	}
	switch hdr.Typeflag {
	case tar.TypeDir:
		return t.addDir(hdr.Name)
	case tar.TypeReg:
		return t.addFile(ctx, hdr.Name, e)
	case tar.TypeSymlink:
		return t.addSymlink(hdr.Name, hdr.Linkname)
	case tar.TypeLink:
		return t.addHardLink(hdr.Name, hdr.Linkname)
	default:
		return refused(hdr.Name, fmt.Sprintf("is of type %q: only files, directories and links are unpacked", hdr.Typeflag))
	}
}

// addZip takes one entry of a zip file.
func (t *tree) addZip(ctx context.Context, e archiver.FileInfo) error {
	hdr, ok := e.Header.(zip.FileHeader)
	if !ok {
		return refused(e.NameInArchive, "has no zip header")
	}
	if err := t.budget.addEntry(); err != nil {
		return err
	}
	const encrypted = 0x1
	if hdr.Flags&encrypted != 0 {
		return refused(hdr.Name, "is encrypted")
	}
	// The library's decoders for other methods answer damaged data with nil.
	if hdr.Method != zip.Store && hdr.Method != zip.Deflate {
		return refused(hdr.Name, fmt.Sprintf("uses compression method %d: only store and deflate are unpacked", hdr.Method))
	}
	switch e.Mode().Type() {
	case fs.ModeDir:
		return t.addDir(hdr.Name)
	case 0:
		return t.addFile(ctx, hdr.Name, e)
	case fs.ModeSymlink:
		target, err := zipLinkTarget(e)
		if err != nil {
			return err
		}
		return t.addSymlink(hdr.Name, target)
	default:
		return refused(hdr.Name, fmt.Sprintf("is of type %v: only files, directories and links are unpacked", e.Mode().Type()))
	}
}

// zipLinkTarget reads a link's target, which zip keeps as its content.
func zipLinkTarget(e archiver.FileInfo) (string, error) {
	r, err := e.Open()
	if err != nil {
		return "", fmt.Errorf("open entry: %w", err)
	}
	defer func() { _ = r.Close() }()
	target, err := io.ReadAll(io.LimitReader(r, maxPathBytes+1))
	return string(target), err
}

// unzip checks against the archive's size what the directory says of entries:
// if they take more than the whole file, they overlap.
func unzip(ctx context.Context, t *tree, file *os.File, size int64) error {
	dir := &zipDirectory{File: file, left: zipDirectoryBytes(t.budget.opts.MaxEntries), limit: t.budget.opts.MaxEntries}
	var compressed uint64
	err := archiver.Zip{}.Extract(ctx, dir, t.keep(func(ctx context.Context, e archiver.FileInfo) error {
		dir.done = true
		if hdr, ok := e.Header.(zip.FileHeader); ok {
			if hdr.CompressedSize64 > uint64(size)-min(compressed, uint64(size)) {
				return refused(hdr.Name, "overlaps other entries")
			}
			compressed += hdr.CompressedSize64
		}
		return t.addZip(ctx, e)
	}))
	if err != nil {
		return fmt.Errorf("unzip: %w", err)
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

// zipDirectoryBytes is what the directory of so many entries may take.
func zipDirectoryBytes(entries int) int64 { return 128<<10 + int64(entries)*256 }

// ReadAt implements io.ReaderAt.
func (z *zipDirectory) ReadAt(p []byte, off int64) (int, error) {
	n, err := z.File.ReadAt(p, off)
	if !z.done {
		if z.left -= int64(n); z.left < 0 {
			return 0, &LimitError{Option: limitEntries, Limit: int64(z.limit), Where: "the zip directory"}
		}
	}
	return n, err
}
