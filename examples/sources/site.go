package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/mholt/archiver/v4"
)

// script is the program that all sources hold.
//
//go:embed run.sh
var script []byte

// site offers the program in all its forms, as files and over HTTP.
type site struct {
	dir  string // absolute
	url  string
	http *http.Server
	done chan struct{}
}

// openSite makes the files in a temporary directory and serves them on a free
// port that only this machine can reach.
func openSite(ctx context.Context) (*site, error) {
	dir, err := os.MkdirTemp("", "tdf-sources-")
	if err != nil {
		return nil, err
	}
	s := &site{dir: dir, done: make(chan struct{})}
	if err := packAll(dir, script); err != nil {
		_ = os.RemoveAll(dir) // the first error says more
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("serving the archives: %w", err)
	}
	s.url = "http://" + listener.Addr().String()
	s.http = &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(listener) // ends with ErrServerClosed
	}()
	return s, nil
}

// close ends the server and removes the files.
func (s *site) close() error {
	_ = s.http.Close() // nobody is waiting for an answer any more
	<-s.done
	return os.RemoveAll(s.dir)
}

// file is the source of a file on this machine, for workers that run here too.
func (s *site) file(name string) string { return "rsync:" + filepath.Join(s.dir, name) }

// web is the source of a file over HTTP.
func (s *site) web(name string) string { return s.url + "/" + name }

// kind is one of the forms in which a program can be offered.
type kind struct {
	// name ends the name of the program that is fetched in this form.
	name string
	// file is where it is found below the directory of the sources.
	file string
	// pack turns the script into that form.
	pack func(script []byte) ([]byte, error)
}

// kinds are all forms there are, each packed by this program.
func kinds() []kind {
	return []kind{
		{"script", "run.sh", bare},
		{"tar", "program.tar", tarball},
		{"tar-gz", "program.tar.gz", compressed(archiver.Gz{})},
		{"tgz", "program.tgz", compressed(archiver.Gz{})},
		{"tar-bz", "program.tar.bz", compressed(archiver.Bz2{})},
		{"tar-bz2", "program.tar.bz2", compressed(archiver.Bz2{})},
		{"tar-xz", "program.tar.xz", compressed(archiver.Xz{})},
		{"tar-zst", "program.tar.zst", compressed(archiver.Zstd{})},
		{"zip", "program.zip", zipped},
	}
}

// packAll writes the script in all its forms into dir.
func packAll(dir string, script []byte) error {
	for _, k := range kinds() {
		packed, err := k.pack(script)
		if err != nil {
			return fmt.Errorf("packing %s: %w", k.file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, k.file), packed, 0o644); err != nil {
			return err
		}
	}
	return nil
}

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

// compressed makes a tar archive and compresses it.
func compressed(how archiver.Compressor) func(script []byte) ([]byte, error) {
	return func(script []byte) ([]byte, error) {
		plain, err := tarball(script)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		w, err := how.OpenWriter(&out)
		if err != nil {
			return nil, fmt.Errorf("compress: %w", err)
		}
		return finish(&out, w, plain)
	}
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
