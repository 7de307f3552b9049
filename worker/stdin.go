package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/task"
)

// errNoStdin is why a handler reads no stdin.
var errNoStdin error = &argumentError{"a Go handler has no standard input: leave stdin out, and let it read input or meta"}

// errNoLimits is why a handler has no limits.
var errNoLimits error = &argumentError{"a Go handler has no limits of its own: leave memory_max, pids_max and nice out"}

// openStdin opens what the program reads from stdin, from its beginning on and for reading only. The slot keeps the file for its
// next round: what many tasks read is fetched from the site once a slot.
func (r *round) openStdin(ctx context.Context) (err error) {
	hash, h := task.SourceSHA256(r.Spec.Stdin), &r.slot.held
	if hash == "" { // of a foreign client
		return &argumentError{fmt.Sprintf("stdin is %q; want blob:sha256=HEX", oneLine(r.Spec.Stdin))}
	}
	if h.stdin == nil || !same(h.stdin, hash) {
		if err := r.fetchStdin(ctx, hash); err != nil {
			return fmt.Errorf("could not get stdin of the task at worker '%s': %w", r.worker.opts.Name, err)
		}
	}
	// Another description of the file: it has a place of its own, and nobody writes through it.
	r.stdin, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", h.stdin.Fd()))
	return err
}

// same reports whether a file still has what was asked for: a program of the worker's own user can get at it.
func same(file *disk.Scratch, hash string) bool {
	sum := sha256.New()
	_, err := io.Copy(sum, io.NewSectionReader(file, 0, math.MaxInt64))
	return err == nil && hex.EncodeToString(sum.Sum(nil)) == hash
}

// fetchStdin makes the slot have a file with what the site keeps under the hash.
func (r *round) fetchStdin(ctx context.Context, hash string) error {
	r.slot.held.closeStdin()
	var file *disk.Scratch
	err := r.worker.reading.ask(ctx, func() (err error) {
		if file != nil {
			_ = file.Close() // what an outage left of it
		}
		if file, err = disk.NewScratch(r.worker.privateDir()); err != nil {
			return err
		}
		return r.worker.opts.Backend.Blob(ctx, hash, file)
	})
	if file == nil {
		return &fetchingError{err}
	}
	if is := file.SHA256(); err == nil && is != hash {
		err = fmt.Errorf("%w: what redis keeps under sha256 %s has another one, %s", fetch.ErrChecksum, hash, is)
	}
	if err == nil {
		err = file.Chmod(0o444) // a program of another user may open /dev/stdin
	}
	if err != nil {
		_ = file.Close() // nothing of it stays
		return &fetchingError{err}
	}
	r.slot.held.stdin = file
	return nil
}

// closeStdin gives up what the slot has kept.
func (h *held) closeStdin() {
	if h.stdin != nil {
		_ = h.stdin.Close() // it was only read
		h.stdin = nil
	}
}
