package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/conn"
)

// remembering is the history of the namespace.
type remembering interface {
	Mark() string
	Namespace() string
	Failover() bool
	History() (seen conn.History, behind bool)
	OpenEpoch(ctx context.Context, waited bool) (conn.NewEpoch, error)
	Remember(h conn.History)
}

// historian notices when Redis has lost what it had acknowledged, and opens a new
// epoch then. With history_file it keeps what it has seen in a file, and notices a
// loss also after all programs were restarted.
type historian struct {
	store remembering
	log   *slog.Logger
	file  string
	// place says whose history the file is about.
	place string
	saved conn.History
	// since is when Redis was found behind; zero while it is not.
	since time.Time
}

// saveInterval is how often the file is written.
const saveInterval = time.Second

func newHistorian(opt *options) *historian {
	return &historian{
		store: opt.store, log: opt.Logger, file: opt.HistoryFile,
		place: opt.store.Mark() + " " + opt.store.Namespace(),
	}
}

// load reads what an earlier server has seen.
func (h *historian) load() error {
	if h.file == "" {
		return nil
	}
	text, err := os.ReadFile(h.file)
	if errors.Is(err, fs.ErrNotExist) {
		return h.write(h.saved) // find out now whether it can be written
	}
	if err != nil {
		return fmt.Errorf("%w HistoryFile: %w; name a file that this server can read and write", errOption, err)
	}
	place, numbers, _ := strings.Cut(string(text), "\n")
	numbers, whole := strings.CutSuffix(numbers, "\n")
	seen, err := conn.ParseHistory(numbers)
	if err != nil || !whole {
		return fmt.Errorf("%w HistoryFile: %s is empty or damaged (%q); put a copy of it back, or delete it to begin anew: "+
			"what Redis has lost since this server saw it last then goes unnoticed", errOption, h.file, text[:min(len(text), 100)])
	}
	if place != h.place {
		h.log.Warn("the history in the file is that of another Redis or namespace, and is not used", "file", h.file)
		return nil
	}
	h.store.Remember(seen)
	h.saved = seen
	return nil
}

// keep saves what was seen, each saveInterval and when ctx ends: apart from the passes, which must not wait for a disk.
func (h *historian) keep(ctx context.Context, _ chan struct{}) {
	for h.file != "" && timing.Pause(ctx, saveInterval) {
		h.save()
	}
	h.save()
}

// save writes what was seen since. That it cannot be written is no reason not to work.
func (h *historian) save() {
	seen, _ := h.store.History()
	if h.file == "" || seen == h.saved {
		return
	}
	if err := h.write(seen); err != nil {
		h.log.Warn("the history was not saved", "error", err)
	}
}

func (h *historian) write(seen conn.History) error {
	err := os.MkdirAll(filepath.Dir(h.file), 0o750)
	if err == nil {
		err = disk.WriteFile(h.file, []byte(h.place+"\n"+seen.String()+"\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("%w HistoryFile: %w; name a file that this server can read and write", errOption, err)
	}
	h.saved = seen
	return nil
}

// failoverPatience is how long a server that is behind may turn out to be the
// former master, which does not know yet that it was replaced.
const failoverPatience = 2 * time.Second

// witnessPatience is how long a server that has seen nothing of former lives of Redis leaves it to others to confirm the new one:
// those that have seen them try to connect at least each two seconds.
const witnessPatience = 3 * time.Second

// watch opens a new epoch, or confirms the life of Redis, if the pass that ended with err, or anybody else, has
// found Redis behind. It reports whether it has opened one.
func (h *historian) watch(ctx context.Context, err error) bool {
	if _, behind := h.store.History(); !behind && !errors.Is(err, conn.ErrHistory) {
		h.since = time.Time{}
		return false
	}
	if h.since.IsZero() {
		h.since = time.Now()
	}
	if h.store.Failover() && time.Since(h.since) < failoverPatience {
		return false
	}
	e, err := h.store.OpenEpoch(ctx, time.Since(h.since) >= witnessPatience)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			h.log.Error("redis has lost changes, and no new epoch could be opened yet", "error", err)
		}
		return false
	case e.Confirmed:
		h.log.Warn(fmt.Sprintf("redis was started anew or failed over, and is confirmed: "+
			"nothing is known to be lost; new ids from %d on, since newer ones than %d may have been given out", e.ToID+1, e.FromID),
			"from_id", e.FromID, "to_id", e.ToID)
	case e.Epoch > 0:
		h.log.Error(fmt.Sprintf("redis has lost at least %d changes that it had acknowledged: epoch %d begins; tasks opened last may be gone "+
			"(newest id %d, new ones from %d on), and what was claimed before is run again", e.Lost, e.Epoch, e.FromID, e.ToID+1),
			"epoch", e.Epoch, "changes", e.Lost, "from_id", e.FromID, "to_id", e.ToID)
	}
	return e.Epoch > 0
}
