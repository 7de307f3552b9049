// Package gather has the lines of a log that belong together reach its file in one
// write, in their order.
//
// Lines are kept for as long as no other line is written and nobody flushes them. So
// who keeps lines flushes them before anything that may wait.
package gather

import (
	"io"
	"log/slog"
	"sync"
)

// Writer passes lines on to another writer. Its methods may be called at the same time.
type Writer struct {
	mu   sync.Mutex
	to   io.Writer
	kept []byte
}

// New returns a Writer that writes to w.
func New(w io.Writer) *Writer { return &Writer{to: w} }

// most is how much is kept.
const most = 32 << 10

// Write writes a line, and before it those that were kept.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.kept) == 0 {
		return w.to.Write(line)
	}
	w.kept = append(w.kept, line...)
	return len(line), w.flush()
}

// keeper is a Writer that keeps lines.
type keeper struct{ *Writer }

// Keeper returns what keeps lines for the next Write or Flush.
func (w *Writer) Keeper() io.Writer { return keeper{w} }

// Write keeps a line.
func (k keeper) Write(line []byte) (int, error) {
	w := k.Writer
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = append(w.kept, line...)
	if len(w.kept) < most {
		return len(line), nil
	}
	return len(line), w.flush()
}

// Flush writes what is kept.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.kept) > 0 {
		_ = w.flush() // as for any line of a log, there is nobody to tell
	}
}

func (w *Writer) flush() error {
	_, err := w.to.Write(w.kept)
	if w.kept = w.kept[:0]; cap(w.kept) > 2*most {
		w.kept = nil
	}
	return err
}

// Gatherer is a handler that can keep lines.
type Gatherer interface {
	slog.Handler
	// Gather returns a handler that keeps lines of level info, and what flushes them.
	Gather() (slog.Handler, func())
}

// Log returns a logger that keeps lines of level info until flush is called or
// another line of that log is written. One whose handler cannot do that writes all at once.
func Log(log *slog.Logger) (gathering *slog.Logger, flush func()) {
	g, ok := log.Handler().(Gatherer)
	if !ok {
		return log, func() {}
	}
	h, flush := g.Gather()
	return slog.New(h), flush
}
