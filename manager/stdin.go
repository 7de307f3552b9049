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

// PutStdin keeps all that content has in Redis, once however often it is put, and returns what Spec.Stdin of the tasks is to say
// that read it. It stays for a day, and for as long as one of them is in Redis. The error matches [task.ErrNoRoom] if there is no
// room for it ([server] blob_limit, blob_quota).
func (m *Manager) PutStdin(ctx context.Context, content io.Reader) (stdin string, err error) {
	if m.unusable != nil {
		return "", m.unusable
	}
	file, err := os.CreateTemp("", "tdf-stdin-")
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
