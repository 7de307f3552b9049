package fetch

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// Pack writes a directory, or one file as a directory of its own, in the format of sources
// of [task.SourceBlob]: a tar file, compressed by zstd. The bytes are the same wherever names, contents, links and the
// right to execute are, whatever the times and owners. Pack refuses what [Fetcher.Ensure] would not unpack again under
// [DefaultOptions], so that one refusal takes the place of one at each worker.
func Pack(ctx context.Context, w io.Writer, name string) error {
	err := pack(ctx, w, func(p *packer) error {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return err
		case info.IsDir():
			return p.directory(name)
		case info.Mode().IsRegular():
			return p.alone(name)
		default:
			return refused(filepath.Base(name), unpacked)
		}
	})
	if err != nil {
		return fmt.Errorf("pack %s: %w", printable(name), err)
	}
	return nil
}

// pack writes an archive.
func pack(ctx context.Context, w io.Writer, fill func(*packer) error) error {
	// One goroutine and a small window: the same bytes on each machine, in the memory that decompression allows.
	packed, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(decoderMemory/8))
	if err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	opts := DefaultOptions()
	p := &packer{ctx: ctx, names: &tree{budget: &budget{opts: &opts}}, tar: tar.NewWriter(packed)}
	err = fill(p)
	// Without all of it there is no archive: where something has failed, the others only tidy up.
	return errors.Join(err, p.tar.Close(), packed.Close())
}

// unpacked is why other things are refused.
const unpacked = "is neither a file, nor a directory, nor a link"

// packer writes one archive.
type packer struct {
	ctx   context.Context //nolint:containedctx // of one call of Pack
	names *tree           // what a worker would write; nothing is written here
	tar   *tar.Writer
}

// directory adds all that a directory holds, in the order of names.
func (p *packer) directory(name string) error {
	root, err := os.OpenRoot(name)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing is written through it
	return fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		return p.entry(root, name)
	})
}

// alone adds one file, also one that a link leads to, under the name that was given.
func (p *packer) alone(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return p.file(filepath.Base(name), file)
}

func (p *packer) entry(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return p.header(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
	case mode.Type() == fs.ModeSymlink:
		return p.link(root, name)
	case !mode.IsRegular():
		return refused(name, unpacked)
	}
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return p.file(name, file)
}

// header begins an entry.
func (p *packer) header(hdr *tar.Header) error {
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	if _, err := p.names.cleanName(hdr.Name); err != nil {
		return err
	}
	if err := p.names.budget.addEntry(); err != nil {
		return err
	}
	hdr.Format = tar.FormatPAX
	if err := p.tar.WriteHeader(hdr); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	return nil
}

// link adds a link, which must lead to something in the directory, or to nothing.
func (p *packer) link(root *os.Root, name string) error {
	target, err := root.Readlink(name)
	if err == nil {
		err = checkTarget(name, target)
	}
	if err != nil {
		return err
	}
	if _, err := root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return refused(name, "is a link that leads outside or into a circle")
	}
	return p.header(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777})
}

// file adds a file, as long as it is now.
func (p *packer) file(name string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	hdr := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size()}
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return refused(name, "is setuid or setgid")
	}
	if err := p.names.budget.fits(name, hdr.Size); err != nil {
		return err
	}
	if info.Mode()&0o111 != 0 {
		hdr.Mode = 0o755
	}
	p.names.budget.bytes += hdr.Size
	if err := p.header(hdr); err != nil {
		return err
	}
	n, err := io.Copy(p.tar, io.LimitReader(whileAlive(p.ctx, file), hdr.Size))
	if err == nil && n < hdr.Size {
		err = fmt.Errorf("file '%s' became shorter while it was read; try again", printable(name))
	}
	return err
}

// Uploadable says why a program could not be run from what Pack makes of a file or directory, nil if it can.
func Uploadable(name, program string) error {
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	if !info.IsDir() {
		if filepath.Base(name) != runFile {
			return fmt.Errorf("%w: %s is a file, and not %s; name the directory that holds %[3]s, or run the file as a command",
				ErrNotRunnable, printable(name), runFile)
		}
		name = filepath.Dir(name)
	}
	return runnable(os.DirFS(name), program)
}
