package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// The rhythm of following: the worker is asked again before the last request is
// forgotten, and the task is looked at whenever a wait for output is over.
const (
	followFor   = 15 * time.Second
	followAgain = 5 * time.Second
	chunkWait   = 500 * time.Millisecond
	// fromStart is how long the beginning of a round is waited for, where only
	// what a reader before us had asked for is there yet.
	fromStart = 2 * time.Second
)

// follower writes what the rounds of one task write, while they write it.
type follower struct {
	s      *session
	id     int64
	name   string // of the stream
	only   int    // the round asked for, or -1
	redis  patience
	asked  time.Time // when the worker was asked last
	hold   time.Time // until when the beginning is waited for
	after  string    // position in the chunks
	waits  []store.Chunk
	waited bool // it was said that the round has not begun
	births *store.Births
}

// glance is what a follower needs to know of the task.
type glance struct {
	state statemachine.State
	round int
}

// begun reports whether round n runs or has run.
func (g glance) begun(n int) bool {
	return g.round > n || g.round == n && g.state != statemachine.Open && g.state != statemachine.Blocked
}

// over reports whether round n will write nothing more.
func (g glance) over(n int) bool {
	return g.begun(n) && (g.round > n || g.state != statemachine.Running)
}

func (o *output) follow(ctx context.Context, s *session) error {
	id, err := manager.ParseID(s.args[0], s.manager.Newest(ctx))
	if err != nil {
		return err
	}
	f := &follower{s: s, id: id, name: outputStream, only: o.round, redis: patience{s: s}}
	if o.stderr {
		f.name = errorStream
	}
	if f.births, err = s.store.Births(ctx); err != nil {
		return err
	}
	g, err := f.look(ctx)
	if err != nil {
		return err
	}
	if o.round >= 0 && o.round != g.round {
		return cli.WithCode(cli.ExitUsage, fmt.Errorf(
			"--round %d: task %d is in round %d; only that can be followed", o.round, id, g.round))
	}
	return f.rounds(ctx, g)
}

// rounds follows one round after the other until the task has ended.
func (f *follower) rounds(ctx context.Context, g glance) error {
	for n := g.round; ; n++ {
		if err := f.round(ctx, n); err != nil {
			return err
		}
		g, err := f.settled(ctx, n)
		if err != nil || f.only >= 0 || g.round == n {
			return err
		}
		f.s.warn("round %d of task %d is over; the task was opened again", n, f.id)
	}
}

// round writes what one round writes, to its end.
func (f *follower) round(ctx context.Context, n int) error {
	out := &stream{out: f.s.out}
	if cli.IsTerminal(f.s.out) {
		out.out = &terminal{w: f.s.out}
	}
	for runs := false; ; {
		g, err := f.look(ctx)
		if err != nil {
			return err
		}
		if g.over(n) {
			return f.finish(ctx, out, n)
		}
		f.sayWaiting(g, n)
		if g.begun(n) && !runs {
			runs, f.asked = true, time.Time{} // now there is a worker to be asked
			f.hold = time.Now().Add(fromStart)
		}
		if err := f.request(ctx); err != nil {
			return err
		}
		if err := f.chunks(ctx, out, n, chunkWait); err != nil {
			return err
		}
	}
}

// finish writes what came at the very end, and then the rest from the record.
func (f *follower) finish(ctx context.Context, out *stream, n int) error {
	f.hold = time.Now().Add(time.Hour) // the record has the beginning
	for before := "-"; before != f.after; {
		before = f.after
		if err := f.chunks(ctx, out, n, time.Millisecond); err != nil {
			return err
		}
	}
	names := []string{outputStream, errorStream, "stderr", "output_bytes", "error_bytes", "dropped", "running"}
	for i, name := range names {
		names[i] = statemachine.RoundField(n, name)
	}
	fields, err := f.fields(ctx, names...)
	if err != nil {
		return err
	}
	get := func(name string) string { return fields[statemachine.RoundField(n, name)] }
	switch {
	case get("running") == "":
		f.s.warn("round %d of task %d did not run", n, f.id)
	case get("dropped") != "":
		f.s.warn("what round %d of task %d wrote is kept no longer (keep_rounds)", n, f.id)
	}
	return out.end(f.record(get), f.held(n)...)
}

// record is the stream as the worker has recorded it.
func (f *follower) record(get func(string) string) record {
	text := get(f.name)
	if text == "" && f.name == errorStream {
		text = get("stderr") // with fail_on = exit that is no error
	}
	size, err := strconv.ParseInt(get(f.name+"_bytes"), 10, 64)
	if err != nil {
		size = -1
	}
	return record{text: text, size: size}
}

// settled waits until it is known whether there will be another round than n.
func (f *follower) settled(ctx context.Context, n int) (glance, error) {
	for {
		g, err := f.look(ctx)
		if err != nil || g.round > n || g.state.Settled() || f.only >= 0 {
			return g, err
		}
		if err := f.chunks(ctx, nil, n, chunkWait); err != nil {
			return g, err
		}
	}
}

// sayWaiting tells, once, that there is nothing to write yet.
func (f *follower) sayWaiting(g glance, n int) {
	if !g.begun(n) && !f.waited {
		f.waited = true
		f.s.warn("round %d of task %d has not begun (the task is %s); waiting", n, f.id, g.state)
	}
}

// chunks writes what has come for round n, waiting at most d for it, and keeps
// what is of later rounds. Without out, what is of round n is passed over.
func (f *follower) chunks(ctx context.Context, out *stream, n int, d time.Duration) error {
	for {
		found, after, err := f.s.store.Chunks(ctx, f.id, f.after, d)
		if err == nil {
			f.redis.answered()
			f.after, f.waits = after, append(f.waits, found...)
			break
		}
		if err := f.redis.failed(ctx, err); err != nil {
			return err
		}
	}
	slices.SortStableFunc(f.waits, func(a, b store.Chunk) int {
		return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Offset, b.Offset))
	})
	for i, c := range f.waits {
		if c.Round > n {
			f.waits = f.waits[i:]
			return nil
		}
		if out == nil || c.Round != n || c.Stream != f.name {
			continue
		}
		if out.at == 0 && c.Offset > 0 && time.Now().Before(f.hold) {
			f.waits = f.waits[i:]
			return nil
		}
		if err := out.put(c.Offset, string(c.Data)); err != nil {
			return err
		}
	}
	f.waits = nil
	return nil
}

// held are the parts of round n that wait for its beginning.
func (f *follower) held(n int) []part {
	var parts []part
	for _, c := range f.waits {
		if c.Round == n && c.Stream == f.name {
			parts = append(parts, part{c.Offset, string(c.Data)})
		}
	}
	return parts
}

// request asks the worker for what the program writes, now and then.
func (f *follower) request(ctx context.Context) error {
	if time.Since(f.asked) < followAgain {
		return nil
	}
	for {
		err := f.s.store.Follow(ctx, f.id, followFor, f.asked.IsZero())
		if err == nil {
			f.redis.answered()
			f.asked = time.Now()
			return nil
		}
		if err := f.redis.failed(ctx, err); err != nil {
			return err
		}
	}
}

// look reads where the task is.
func (f *follower) look(ctx context.Context) (glance, error) {
	fields, err := f.fields(ctx, "round")
	if err != nil {
		return glance{}, err
	}
	g := glance{state: statemachine.State(fields["state"])}
	if g.round, err = strconv.Atoi(fields["round"]); err != nil || !g.state.Valid() {
		return g, fmt.Errorf("task %d: %w", f.id, store.ErrDamaged)
	}
	return g, nil
}

// fields reads fields of the task, as long as it is the same task.
func (f *follower) fields(ctx context.Context, names ...string) (map[string]string, error) {
	for {
		found, err := f.s.store.Fields(ctx, []int64{f.id}, store.BirthFields(names...)...)
		if err == nil {
			err = f.births.Check(ctx, []int64{f.id}, found)
		}
		switch {
		case err == nil && found[0] != nil:
			f.redis.answered()
			return found[0], nil
		case err == nil:
			var task *store.Task
			if task, err = f.s.store.Task(ctx, f.id); err == nil {
				err = task.Err
			}
			if err == nil { // it has just been written
				continue
			}
		}
		if err := f.redis.failed(ctx, err); err != nil {
			return nil, err
		}
	}
}

// patience is what a verb has that goes on while Redis is away.
type patience struct {
	s    *session
	lost bool
}

// failed waits a little; the error is the one to end with.
func (p *patience) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", p.s.cmd.Name(), context.Cause(ctx))
	}
	if !errors.Is(err, store.ErrUnreachable) {
		return err
	}
	if !p.lost {
		p.lost = true
		p.s.warn("%s; trying again", cli.Safe(err.Error()))
	}
	select {
	case <-ctx.Done():
	case <-time.After(chunkWait):
	}
	return nil
}

// answered notes that Redis works.
func (p *patience) answered() {
	if p.lost {
		p.lost = false
		p.s.warn("redis answers again")
	}
}
