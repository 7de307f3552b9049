package manager

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/task"
)

// WithCaller names who wants the changes that are made with the context it returns, and the request that they belong to, empty for none.
// Each such change, but not a submission, leaves an entry in the log of changes ([Manager.Changes]); none does if by is empty. Without a
// caller only changes leave one whose [ChangeOptions] have another By than the name of the manager: a program that opens and steers its
// own tasks leaves none, and pays nothing.
func WithCaller(ctx context.Context, by, request string) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{by, request})
}

type callerKey struct{}

type caller struct{ by, request string }

// Logged makes all changes that do makes, with the context it gets, one entry of the log of changes: what is the verb and asked says how
// tasks were selected, or what was set; both may be empty. Who and why are those of o and of [WithCaller]. If do changes nothing, or o is
// that of a dry run, there is no entry. The entry is made after do, also if do returns an error; the error is that of do, or says that
// there is no entry of what was changed. Within another Logged it only calls do.
func (m *Manager) Logged(ctx context.Context, what, asked string, o ChangeOptions, do func(context.Context) error) error {
	if madeIn(ctx) != nil {
		return do(ctx)
	}
	c, known := ctx.Value(callerKey{}).(caller)
	if nobody := known && c.by == ""; !nobody && o.By != m.name {
		c.by = cmp.Or(o.By, c.by)
	}
	if c.by == "" || o.DryRun {
		return do(ctx)
	}
	made := &made{entry: task.ChangeEntry{By: c.by, What: what, Asked: asked, Reason: o.Reason, Request: c.request}}
	err := do(context.WithValue(ctx, madeKey{}, made))
	if logErr := m.enter(ctx, made); logErr != nil {
		return earlier(err, logErr)
	}
	return err
}

// earlier returns err, or later if err is nil.
func earlier(err, later error) error {
	if err != nil {
		return err
	}
	return later
}

type madeKey struct{}

// made is what was changed so far, for one entry of the log of changes.
type made struct {
	mu    sync.Mutex
	entry task.ChangeEntry
	names []string
	ids   []int64
}

// madeIn is what gathers the changes made with ctx; nil for nothing.
func madeIn(ctx context.Context) *made {
	c, _ := ctx.Value(madeKey{}).(*made)
	return c
}

func (c *made) add(what string, names []string, ids []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entry.What = cmp.Or(c.entry.What, what)
	c.names, c.ids = append(c.names, names...), append(c.ids, ids...)
}

// note says that what has names was changed, or tasks were. Every change passes here. In a dry run it notes nothing.
func (m *Manager) note(ctx context.Context, o ChangeOptions, what string, names []string, ids []int64) error {
	if o.DryRun || len(names)+len(ids) == 0 {
		return nil
	}
	return m.Logged(ctx, what, "", o, func(ctx context.Context) error {
		if c := madeIn(ctx); c != nil {
			c.add(what, names, ids)
		}
		return nil
	})
}

// The longest texts of an entry, in bytes: many are kept, and some come from clients.
const (
	longestOn     = 200
	longestReason = 400
)

// enter makes the entry, also if ctx has ended: what was changed stands.
func (m *Manager) enter(ctx context.Context, c *made) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry
	on := clean.Ranges(c.ids)
	if e.Count = int64(len(c.ids)); len(c.names) > 0 {
		names := slices.Compact(slices.Sorted(slices.Values(c.names)))
		on, e.Count = strings.Join(names, ","), cmp.Or(e.Count, int64(len(names)))
	}
	if on == "" {
		return nil
	}
	if len(on) > longestOn {
		on = on[:max(0, strings.LastIndexByte(on[:longestOn], ','))] + ",..."
	}
	e.On, e.Reason = on, clean.Shorten(e.Reason, longestReason)
	e.By, e.Asked = clean.Shorten(e.By, longestReason), clean.Shorten(e.Asked, longestReason)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*patience)
	defer cancel()
	call := conn.NewToken()
	_, err := retryUntilAvailable(within, m, func() (struct{}, error) { return struct{}{}, m.store.EnterChange(within, call, &e) })
	if err != nil {
		return fmt.Errorf("what was changed stands, but the log of changes has no entry of it: %w", err)
	}
	return nil
}

// changesPage is how many entries are read in one call.
const changesPage = 500

// Changes reads the log of changes, the newest entry first, from the one before the entry of that number; 0 for all. An error ends it.
// Servers keep the newest 100,000.
func (m *Manager) Changes(ctx context.Context, before int64) iter.Seq2[task.ChangeEntry, error] {
	return eachOf(func(yield func([]task.ChangeEntry, error) bool) {
		for {
			found, err := m.store.ChangesBefore(ctx, before, changesPage)
			if !yield(found, err) || err != nil || len(found) < changesPage {
				return
			}
			before = found[len(found)-1].ID
		}
	})
}
