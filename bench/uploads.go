package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/task"
)

// uploadBytes is the size of the file in the directory that is uploaded; it cannot be compressed.
const uploadBytes = 8 << 20

// uploads measures what it costs to put a directory into Redis, and to install it from there, beside a web server on this host.
func (b *bench) uploads(ctx context.Context) ([]Table, error) {
	dir := filepath.Join(b.dir, "uploaded")
	noise := make([]byte, uploadBytes)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "noise"), noise, 0o600),
		os.WriteFile(filepath.Join(dir, "run.sh"), []byte("#!/bin/sh\n"), 0o700))
	var packed bytes.Buffer
	if err = errors.Join(err, fetch.Pack(ctx, &packed, dir)); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(packed.Bytes())
	u := uploading{bench: b, content: packed.Bytes(), hash: hex.EncodeToString(sum[:])}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(u.content) }))
	defer web.Close()
	var tables []Table
	err = site.With(ctx, func(s *site.Site) error {
		u.site = s
		err := s.Store.PublishBlobs(ctx, uploadBytes*2, 1<<40, time.Hour)
		if err != nil {
			return err
		}
		if err = s.Store.PutBlob(ctx, u.hash, int64(len(u.content)), bytes.NewReader(u.content)); err != nil {
			return err
		}
		const fromWeb = "installed from a web server"
		all := []*contender{
			b.timed(fromWeb, u.install(web.URL+"/p.tar.zst"+task.Pin(u.hash))),
			b.timed("installed from Redis", u.install(task.BlobSource(u.hash))),
			b.timed("packed", u.each(func(ctx context.Context, _ int) error { return fetch.Pack(ctx, io.Discard, dir) })),
			b.timed("put into Redis", u.each(u.put)),
			b.timed("returned", u.each(u.giveBack)),
			b.timed("returned to a directory", u.deliver),
			b.timed("collected", u.each(u.collect)),
			b.timed("stdin fetched", u.each(u.stdin)),
		}
		tables, err = b.compare(ctx, all, comparison{
			Table: Table{
				Name: "uploads", Title: fmt.Sprintf("Directories of %d MiB: %d, one at a time", uploadBytes>>20, b.Tasks),
				Metrics: []Metric{rate, cpuMillis}, Reference: fromWeb,
			},
			ratios: []Metric{rate, cpuMillis},
		})
		return err
	})
	return tables, err
}

// uploading is what the contenders have in common.
type uploading struct {
	*bench

	site    *site.Site
	content []byte
	hash    string
	puts    int
	// returned is the hash of what was returned last.
	returned string
}

// each does something n times.
func (u *uploading) each(do func(ctx context.Context, i int) error) func(ctx context.Context, n int) (time.Duration, error) {
	return func(ctx context.Context, n int) (time.Duration, error) {
		began := time.Now()
		for i := range n {
			if err := do(ctx, i); err != nil {
				return 0, err
			}
		}
		return time.Since(began), nil
	}
}

// put puts the content under a hash that it does not have, as if it was another one.
func (u *uploading) put(ctx context.Context, _ int) error {
	u.puts++
	return u.site.Store.PutBlob(ctx, fmt.Sprintf("%064x", u.puts), int64(len(u.content)), bytes.NewReader(u.content))
}

// giveBack packs the directory as a round returns its files, and puts them under a hash that Redis does not have.
func (u *uploading) giveBack(ctx context.Context, _ int) error {
	var packed bytes.Buffer
	if _, _, err := fetch.PackFiles(ctx, &packed, filepath.Join(u.dir, "uploaded"), "", []string{"."}); err != nil {
		return err
	}
	u.puts++
	u.returned = fmt.Sprintf("%064x", u.puts)
	return u.site.Store.PutFiles(ctx, u.returned, int64(packed.Len()), bytes.NewReader(packed.Bytes()), true)
}

// deliver returns the same files to a directory (return_to), where they are plain and durable.
func (u *uploading) deliver(ctx context.Context, n int) (took time.Duration, err error) {
	to, err := os.MkdirTemp(u.dir, "destination-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(to)) }()
	o := fetch.DefaultOptions()
	o.Dir = filepath.Join(to, "programs")
	f, err := fetch.New(o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := fetch.Return{
		To: to, Dir: filepath.Join(u.dir, "uploaded"), Patterns: []string{"."}, Scratch: u.dir,
		As: func(do func() error) error { return do() },
	}
	return u.each(func(ctx context.Context, i int) error {
		r.Task = int64(i)
		p, err := f.Collect(ctx, r)
		if err != nil {
			return err
		}
		_, err = p.Deliver(ctx)
		return errors.Join(err, p.Close(ctx))
	})(ctx, n)
}

// stdin reads what a program gets from its stdin (submit --stdin), as a slot does whose last task read something else.
func (u *uploading) stdin(ctx context.Context, _ int) error {
	file, err := disk.NewScratch(u.dir)
	if err != nil {
		return err
	}
	err = u.site.Store.Blob(ctx, u.hash, file)
	if is := file.SHA256(); err == nil && is != u.hash {
		err = fmt.Errorf("stdin has sha256 %s", is)
	}
	return errors.Join(err, file.Close())
}

// collect reads the files that were returned last.
func (u *uploading) collect(ctx context.Context, i int) error {
	if u.returned == "" {
		if err := u.giveBack(ctx, i); err != nil {
			return err
		}
	}
	var packed bytes.Buffer
	if err := u.site.Store.Files(ctx, u.returned, &packed); err != nil {
		return err
	}
	return fetch.UnpackFiles(ctx, &packed, func(_ string, _ fs.FileMode, _ int64, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
}

// install installs a source as so many programs, on an empty disk.
func (u *uploading) install(source string) func(ctx context.Context, n int) (time.Duration, error) {
	return func(ctx context.Context, n int) (took time.Duration, err error) {
		o := fetch.DefaultOptions()
		if o.Dir, err = os.MkdirTemp(u.dir, "programs-"); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
		o.Blob = u.site.Store.Blob
		f, err := fetch.New(o)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		return u.each(func(ctx context.Context, i int) error {
			_, err := f.Ensure(ctx, "p"+strconv.Itoa(i), source, nil)
			return err
		})(ctx, n)
	}
}
