package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/mholt/archiver/v4"
)

// The script's name in every archive, at the top level and executable.
const (
	runFile = "run.sh"
	runMode = 0o755
)

func bare(script []byte) ([]byte, error) { return script, nil }

func tarball(script []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Name: runFile, Mode: runMode, Size: int64(len(script))}); err != nil {
		return nil, fmt.Errorf("header of %s: %w", runFile, err)
	}
	return finish(&out, w, script)
}

func zipped(script []byte) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	header := &zip.FileHeader{Name: runFile, Method: zip.Deflate}
	header.SetMode(runMode)
	file, err := w.CreateHeader(header)
	if err != nil {
		return nil, fmt.Errorf("header of %s: %w", runFile, err)
	}
	return finish(&out, entry{file, w}, script)
}

// entry is a file in a zip archive; closing it closes the archive.
type entry struct {
	io.Writer
	io.Closer
}

func gzipped(script []byte) ([]byte, error) {
	return compressed(script, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
}

func bzipped(script []byte) ([]byte, error)   { return compressed(script, archiver.Bz2{}.OpenWriter) }
func xzipped(script []byte) ([]byte, error)   { return compressed(script, archiver.Xz{}.OpenWriter) }
func zstandard(script []byte) ([]byte, error) { return compressed(script, archiver.Zstd{}.OpenWriter) }

// compressed makes a tar archive and compresses it.
func compressed(script []byte, open func(io.Writer) (io.WriteCloser, error)) ([]byte, error) {
	plain, err := tarball(script)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := open(&out)
	if err != nil {
		return nil, err
	}
	return finish(&out, w, plain)
}

// finish writes content, closes w, and returns what has arrived in out.
func finish(out *bytes.Buffer, w io.WriteCloser, content []byte) ([]byte, error) {
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
