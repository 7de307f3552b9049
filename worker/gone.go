package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A pinned version that neither its source nor Redis has any more may be kept by another worker, to which the task is left.
const (
	// goneWait is how long a task waits that no worker can run, from when the first one has turned it away.
	goneWait = time.Minute
	// goneRest is how long it rests at first, goneLeast the shortest wait that is worth another round.
	goneRest, goneLeast = 5 * time.Second, time.Second
	// keepersKnown is for how long the answer of the others counts.
	keepersKnown = 5 * time.Second
)

// leftError is why a round is handed back whose version is not here.
type leftError struct {
	err   error
	till  statemachine.Time // until when it waits
	to    []string          // the workers that it is left to, which keep the version; none are known if empty
	after statemachine.Time // its rest, 0 for none
	what  string            // program and hash
}

// Error names the version, and who has it.
func (e *leftError) Error() string {
	if len(e.to) > 0 {
		return fmt.Sprintf("%s is left to workers that keep it, %s: %s", e.what, strings.Join(e.to, ", "), e.err)
	}
	return fmt.Sprintf("no worker has %s: %s", e.what, e.err)
}

// Unwrap gives the error of the fetch.
func (e *leftError) Unwrap() error { return e.err }

// avoid is the value of avoidField.
func (e *leftError) avoid() string {
	if len(e.to) == 0 {
		return e.till.Text() + " /"
	}
	return e.till.Text() + " /" + strings.Join(e.to, "/") + "/"
}

// leave decides what becomes of a round whose version is gone: it is left to workers that keep it. If none does, the task waits for one,
// until a minute has passed since it was first turned away; without any other worker the round fails at once.
func (r *round) leave(ctx context.Context, err error) error {
	w, program, hash := r.worker, r.Spec.Program, task.SourceSHA256(r.Spec.Source)
	if r.command != "" {
		program = uploads
	}
	till, was := r.turnedAway(ctx)
	keep, others, askErr := w.keepers.ask(r.Bucket.Name()+" "+program+"@"+hash, func() ([]string, int, error) {
		return w.opts.Backend.Keepers(ctx, w.opts.Name, r.Bucket, program+"@"+hash)
	})
	if askErr != nil {
		r.log.Debug("could not ask who keeps a version", "error", askErr)
		return err
	}
	now := r.clock.now()
	left := &leftError{err: err, till: till, to: keep, what: fmt.Sprintf("version %s of program '%s'", hash, program)}
	wait := timing.FromStd(w.opts.goneWait)
	if !was || len(keep) > 0 {
		left.till = now.Add(wait)
	}
	remains := left.till.Sub(now)
	switch {
	case len(keep) > 0:
		return left
	case others == 0 || was && remains < timing.FromStd(goneLeast):
		return fmt.Errorf("%w; no other worker has it: submit the task again with --pin or --upload, or put that version back", err)
	}
	waited := wait - remains
	left.after = now.Add(min(max(waited, timing.FromStd(goneRest)), remains))
	return left
}

// uploads is the program that the directories are stored as which commands run in.
const uploads = "upload"

// turnedAway is until when the record says that the task waits, if a worker has turned it away before.
func (r *round) turnedAway(ctx context.Context) (till statemachine.Time, was bool) {
	found, err := r.worker.opts.Backend.Fields(ctx, []int64{r.Task.ID}, avoidField)
	if err != nil || len(found) == 0 {
		return 0, false
	}
	text, to, _ := strings.Cut(found[0][avoidField], " ")
	till, err = statemachine.ParseTime(text)
	return till, err == nil && strings.HasPrefix(to, "/")
}

// keepers are what other workers have answered a moment ago, so that a thousand tasks of one version ask once.
type keepers struct {
	mu    sync.Mutex // held while they are asked
	known map[string]answered
}

type answered struct {
	at   time.Time
	keep []string
	of   int
}

func (k *keepers) ask(what string, ask func() ([]string, int, error)) (keep []string, of int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, a := range k.known {
		if time.Since(a.at) >= keepersKnown {
			delete(k.known, key)
		}
	}
	a, ok := k.known[what]
	if !ok {
		if a.keep, a.of, err = ask(); err != nil {
			return nil, 0, err
		}
		if k.known == nil {
			k.known = map[string]answered{}
		}
		if a.at = time.Now(); a.of > 0 { // else a task would fail because somebody has just come
			k.known[what] = a
		}
	}
	return a.keep, a.of, nil
}

// isGone reports whether an error of a fetch means that the version is neither at its source nor in Redis.
func isGone(ctx context.Context, err error) bool {
	return errors.Is(err, task.ErrNoBlob) && ctx.Err() == nil
}

// fetchFirst has a source fetched that the first worker pins for all tasks of a plan. A program that was put there by hand has no
// version that others could run.
func (r *round) fetchFirst(ctx context.Context, source string, ensure func() (fetch.Version, error)) (fetch.Version, error) {
	r.Spec.Source = source
	key := first{cmp.Or(r.Plan, r.Job), source}
	if key.plan == 0 {
		return ensure()
	}
	hash := r.worker.firsts.get(key)
	for said := ""; hash == ""; {
		var err error
		if hash, err = r.worker.opts.Backend.FirstVersion(ctx, key.plan, source, said); err != nil {
			return fetch.Version{}, err
		}
		if hash != "" {
			r.worker.firsts.put(key, hash)
			break
		}
		v, err := ensure()
		if said = v.SHA256; err != nil || said == "" {
			return v, err
		}
	}
	r.Spec.Source = source + task.Pin(hash)
	return ensure()
}

// first is a source of a plan; firsts are the versions that are known of some.
type first struct {
	plan   task.PlanID
	source string
}

type firsts struct {
	mu    sync.Mutex
	known map[first]string
}

// mostFirsts is how many are known at most; some are asked for anew then.
const mostFirsts = 1000

func (f *firsts) get(key first) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[key]
}

func (f *firsts) put(key first, hash string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known) >= mostFirsts {
		f.known = map[first]string{}
	}
	f.known[key] = hash
}
