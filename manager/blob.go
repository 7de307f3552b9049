package manager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

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
