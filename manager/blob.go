package manager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tdf-go/tdf/task"
)

// PutBlob keeps size bytes in Redis under their hash, 64 hexadecimal digits in small letters, and returns how Spec.Source or Spec.Stdin
// names them, blob:sha256=HASH. They stay for a day, and for as long as a task that names them is in Redis. The error matches
// [task.ErrNoRoom] if there is no room for them ([server] blob_limit, blob_quota). That they have this hash, the caller makes sure:
// workers refuse what has another one.
func (m *Manager) PutBlob(ctx context.Context, hash string, size int64, content io.ReaderAt) (name string, err error) {
	if m.unusable != nil {
		return "", m.unusable
	}
	return retryUntilAvailable(ctx, m, func() (string, error) {
		return task.BlobSource(hash), m.store.PutBlob(ctx, hash, size, content)
	})
}

// Blob writes to w what PutBlob has put. The error matches [task.ErrNoBlob] if Redis does not have it, or has something else in its place.
func (m *Manager) Blob(ctx context.Context, hash string, w io.Writer) error {
	return verified(hash, w, func(w io.Writer) error { return m.store.Blob(ctx, hash, w) })
}

// BlobSize is how many bytes PutBlob has put under a hash. The error matches [task.ErrNoBlob] if Redis does not have them.
func (m *Manager) BlobSize(ctx context.Context, hash string) (int64, error) {
	size, there, err := m.store.BlobSize(ctx, hash)
	if err == nil && !there {
		err = fmt.Errorf("sha256 %s: %w", hash, task.ErrNoBlob)
	}
	return size, err
}

// BlobLimit is the most bytes that PutBlob takes, as servers have published it ([server] blob_limit).
func (m *Manager) BlobLimit(ctx context.Context) (int64, error) { return m.store.BlobLimit(ctx) }

// verified has read write a blob to w, and compares the hash.
func verified(hash string, w io.Writer, read func(io.Writer) error) error {
	sum := sha256.New()
	if err := read(io.MultiWriter(w, sum)); err != nil {
		return err
	}
	if is := hex.EncodeToString(sum.Sum(nil)); is != hash {
		return fmt.Errorf("%w: what Redis keeps under sha256 %s has another one, %s", task.ErrNoBlob, hash, is)
	}
	return nil
}

// PutStdin keeps all that content has in Redis, once however often it is put, and returns what Spec.Stdin of the tasks is to say
// that read it. It stays for a day, and for as long as one of them is in Redis. The error matches [task.ErrNoRoom] if there is no
// room for it ([server] blob_limit, blob_quota).
func (m *Manager) PutStdin(ctx context.Context, content io.Reader) (stdin string, err error) {
	if m.unusable != nil {
		return "", m.unusable
	}
	file, err := os.CreateTemp("", "tdf-stdin-") // not a disk.Scratch, which would bind every manager program to Unix
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := os.Remove(file.Name()); err != nil { // it needs no name
		return "", err
	}
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, sum), content)
	if err != nil {
		return "", fmt.Errorf("copy what is put: %w", err)
	}
	return m.PutBlob(ctx, hex.EncodeToString(sum.Sum(nil)), size, file)
}

// takeStdin makes the stdin of a task one that Redis keeps.
func (s *submission) takeStdin(ctx context.Context, d *task.Definition) error {
	const field = "stdin"
	text := d.Text(field)
	kept, err := s.once(ctx, given{field, text}, s.m.keptStdin)
	if err != nil {
		return fmt.Errorf("stdin %q: %w", text, err)
	}
	return d.Set(field, kept)
}

// keptStdin takes a file along that lies here, and refuses what Redis does not have.
func (m *Manager) keptStdin(ctx context.Context, text string) (string, error) {
	name, here := strings.CutPrefix(text, task.FilePrefix)
	if here {
		file, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer func() { _ = file.Close() }() // it was only read
		return m.PutStdin(ctx, file)
	}
	there, err := retryUntilAvailable(ctx, m, func() (bool, error) {
		_, there, err := m.store.BlobSize(ctx, task.SourceSHA256(text))
		return there, err
	})
	if err == nil && !there {
		err = fmt.Errorf("%w; put it again, as file:PATH", task.ErrNoBlob)
	}
	return text, err
}
