package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	err     error
	till    statemachine.Time // until when it waits
	to      []string          // the workers that it is left to, which keep the version; none are known if empty
	after   statemachine.Time // its rest, 0 for none
	version string            // PROGRAM@SHA256
}

// Error names the version, and who has it.
func (e *leftError) Error() string {
	if len(e.to) > 0 {
		return fmt.Sprintf("version %s is left to workers that keep it, %s: %s", e.version, strings.Join(e.to, ", "), e.err)
	}
	return fmt.Sprintf("no worker has version %s: %s", e.version, e.err)
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
	w, version := r.worker, r.Spec.Program+"@"+task.SourceSHA256(r.Spec.Source)
	if r.command != "" {
		version = uploads + "@" + task.SourceSHA256(r.Spec.Source)
	}
	var was leftError
	var keep []string
	var others int
	askErr := w.reading.ask(ctx, func() (err error) {
		if was, err = r.turnedAway(ctx); err == nil {
			keep, others, err = w.keepers.ask(r.Bucket.Name()+" "+version, func() ([]string, int, error) {
				return w.opts.Backend.Keepers(ctx, w.opts.Name, r.Bucket, version)
			})
		}
		return err
	})
	if askErr != nil {
		r.log.Debug("could not ask who keeps a version", "error", askErr)
		return err
	}
	if slices.Contains(was.to, w.opts.Name) {
		keep = nil // whoever says so may have it as little as this worker, which has said so too
	}
	now, wait := r.clock.now(), timing.FromStd(w.opts.goneWait)
	left := &leftError{err: err, till: was.till, to: keep, version: version}
	if was.till == 0 || len(keep) > 0 {
		left.till = now.Add(wait)
	}
	switch remains := left.till.Sub(now); {
	case len(keep) > 0 && len(was.to) > 0 && was.till > now: // claims do not pass over so many
		left.after = now.Add(wait / 2)
	case len(keep) > 0:
	case others == 0 || was.till != 0 && remains < timing.FromStd(goneLeast):
		return fmt.Errorf("no other worker has version %s: submit again with --pin or --upload, or put that version back: %w", version, err)
	default:
		left.after = now.Add(min(max(wait-remains, timing.FromStd(goneRest)), remains))
	}
	return left
}

// uploads is the program that the directories are stored as which commands run in.
const uploads = "upload"

// turnedAway is what the record says of a worker that has turned the task away before; its till is 0 if none has.
func (r *round) turnedAway(ctx context.Context) (was leftError, err error) {
	found, err := r.worker.opts.Backend.Fields(ctx, []int64{r.Task.ID}, avoidField)
	if err != nil || len(found) == 0 {
		return was, err
	}
	text, to, _ := strings.Cut(found[0][avoidField], " /")
	if till, err := statemachine.ParseTime(text); err == nil { // else a server has left it to another node
		was.till, was.to = till, strings.FieldsFunc(to, func(c rune) bool { return c == '/' })
	}
	return was, nil
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
	key := first{r.worker.lease.last().Incarnation, cmp.Or(r.Plan, r.Job), source}
	if key.plan == 0 {
		return ensure()
	}
	hash := r.worker.firsts.get(key)
	for said := ""; hash == ""; {
		err := r.worker.reading.ask(ctx, func() (err error) {
			hash, err = r.worker.opts.Backend.FirstVersion(ctx, key.plan, source, said)
			return err
		})
		if err != nil {
			return fetch.Version{}, &fetchingError{err}
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

// first is a source of a plan, in a session: after a flush plans are counted anew. firsts are the versions that are known of some.
type first struct {
	session int64
	plan    task.PlanID
	source  string
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
