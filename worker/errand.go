package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/task"
)

// errands are what is asked of a worker beside its rounds.
type errands struct {
	working sync.Mutex // one is done at a time

	mu     sync.Mutex
	recent []string // requests that were heard of, the newest last
	queue  int      // how many wait, or are being done
}

const (
	// maxErrands is how many errands may wait. Who asked for more gets no answer, and asks again.
	maxErrands = 8
	// rememberedErrands is how many are known when they are heard of again.
	rememberedErrands = 64
)

// begin reports whether an errand is to be done: it is new, and there is room for it.
func (e *errands) begin(request string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queue == maxErrands || slices.Contains(e.recent, request) {
		return false
	}
	e.queue++
	e.recent = append(e.recent[max(0, len(e.recent)-rememberedErrands+1):], request)
	return true
}

func (e *errands) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue--
}

// errand does in the background what a request asks of the worker.
func (w *Worker) errand(ctx context.Context, request string) {
	if !w.errands.begin(request) {
		return
	}
	w.background.Go(func() {
		defer w.errands.end()
		w.errands.working.Lock()
		defer w.errands.working.Unlock()
		err := w.opts.Backend.Errand(ctx, w.opts.Name, request, func(text string) string { return w.answer(ctx, text) })
		if err != nil && ctx.Err() == nil {
			w.log.Warn("could not answer what was asked about the programs of this worker", "error", err)
		}
	})
}

// answer does an errand and says what came of it.
func (w *Worker) answer(ctx context.Context, text string) string {
	stock := task.Stock{Worker: w.opts.Name, Node: w.opts.Node, Versions: []task.StoredVersion{}}
	var e task.Errand
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields() // it may be what keeps versions from being removed
	err := decoder.Decode(&e)
	if err == nil {
		err = w.takeStock(ctx, &e, &stock)
	}
	if err != nil {
		stock.Error = err.Error()
	}
	for {
		answer, err := json.Marshal(&stock)
		n := len(stock.Versions) / 2
		if n == 0 || err == nil && len(answer) <= maxAnswer {
			return string(answer)
		}
		stock.Versions, stock.More = stock.Versions[:n], stock.More+len(stock.Versions)-n
	}
}

// maxStock is the most versions of an answer, maxAnswer the most bytes.
const (
	maxStock  = 1000
	maxAnswer = 1 << 20
)

// takeStock does an errand in the program directory.
func (w *Worker) takeStock(ctx context.Context, e *task.Errand, stock *task.Stock) (err error) {
	if w.opts.errands == nil {
		return nil // it runs no programs, or others keep them
	}
	if stock.Dir, err = filepath.Abs(w.opts.ProgramDir); err != nil {
		return fmt.Errorf("program_dir: %w", err)
	}
	stock.Place = placeOf(stock.Dir)
	if err := e.Check(); err != nil {
		return err
	}
	versions, err := w.do(ctx, e)
	if err != nil {
		return err
	}
	behind := time.Until(time.UnixMicro(int64(w.clock.Load().now()))) // of the clock of Redis is this host's
	uses := w.uses()
	for i := range versions {
		v := &versions[i]
		use := uses[filepath.Join(v.Program, v.SHA256)]
		if v.Slots, v.Rounds = use.slots, use.rounds; use.last.After(v.Used) {
			v.Used = use.last
		}
		for _, at := range []*time.Time{&v.Used, &v.Installed} {
			if !at.IsZero() {
				*at = at.Add(behind).UTC().Truncate(time.Microsecond)
			}
		}
		if v.Removed {
			w.log.Info("removed a version of a program, as was asked for", "program", v.Program, "sha256", v.SHA256)
		}
	}
	if e.UnusedFor > 0 {
		versions = slices.DeleteFunc(versions, func(v task.StoredVersion) bool { return v.Slots > 0 })
	}
	slices.SortStableFunc(versions, func(a, b task.StoredVersion) int { return cmp.Compare(b.Bytes, a.Bytes) })
	n := min(len(versions), maxStock)
	stock.Versions, stock.More = append(stock.Versions, versions[:n]...), len(versions)-n
	return nil
}

// do does an errand. Slots that are idle, or become so meanwhile, hold none of the versions that it names.
func (w *Worker) do(ctx context.Context, e *task.Errand) ([]task.StoredVersion, error) {
	if e.Remove && e.UnusedFor == 0 {
		letting, stop := context.WithCancel(ctx)
		var done sync.WaitGroup
		done.Go(func() {
			for letting.Err() == nil {
				w.letGo(e)
				timing.Pause(letting, letGoAgain)
			}
		})
		defer done.Wait()
		defer stop()
	}
	return w.opts.errands(ctx, e)
}

// letGoAgain is how often slots are looked at that were not idle.
const letGoAgain = 20 * time.Millisecond

// letGo makes idle slots give up the versions that are to be removed.
func (w *Worker) letGo(e *task.Errand) {
	w.pool.whileIdle(func(s *slot) {
		if k := s.held.keeps.Load(); k != nil && e.Means(k.program(), k.SHA256) {
			s.held.letGo()
		}
	})
}

// program is that of the version, by the name of its directory.
func (k *kept) program() string {
	if k.SHA256 == "" {
		return filepath.Base(k.Dir)
	}
	return filepath.Base(filepath.Dir(k.Dir))
}

// use is what the slots of a worker do with a version.
type use struct {
	slots, rounds int
	last          time.Time
}

// uses are those of versions, by directory below that of programs.
func (w *Worker) uses() map[string]use {
	all := map[string]use{}
	for _, s := range w.slots {
		k := s.held.keeps.Load()
		if k == nil {
			continue
		}
		key := filepath.Join(k.program(), k.SHA256)
		u := all[key]
		u.slots++
		if used := time.Unix(k.used.Load(), 0); used.After(u.last) {
			u.last = used
		}
		if r := s.current(); r != nil && r.Task.ID == k.task.Load() {
			u.rounds, u.last = u.rounds+1, time.Now()
		}
		all[key] = u
	}
	return all
}

// placeOf is the same text for each path to a directory of this host, in containers too.
func placeOf(dir string) string {
	boot, _, _ := strings.Cut(shim.ThisProcess(), " ")
	host, _ := os.Hostname()
	if len(boot) > 1 { // it is known
		host = boot
	}
	info, err := os.Stat(dir)
	if err != nil {
		return host + " " + dir
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return host + " " + dir
	}
	return fmt.Sprintf("%s %d %d", host, sys.Dev, sys.Ino)
}
